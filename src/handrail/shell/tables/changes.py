"""
Programs that are never read-only, listed so that the explanation says why and deny rules see the files they write.

Options are listed as far as needed to tell files from values; one that is not listed only adds a reason.
"""

from handrail.shell.tables.format import LOOK, NETWORK, PROGRAM, READ, REMOVE, STATE, TEXT, WRITE, Command, always

SOURCES = {
    "GNU coreutils 9.1": "cp mv ln install rm rmdir shred unlink mkdir touch tee truncate split link",
    "rsync 3.2": "rsync",
    "moreutils 0.67": "sponge",
    "the manual page of each": "*",
}

MODES = "-f --force -i --interactive -v --verbose -n -T --no-target-directory -b"


def copies(flags: str, moves_files: str = "") -> Command:
    return Command(
        effect={WRITE: "writes files"},
        flags=f"{MODES} {flags}",
        values={"-S --suffix": TEXT, "-t --target-directory": WRITE},
        expression="files.copy",
        moves_files=moves_files,
    )


def removes(why: str, flags: str, values: str = "") -> Command:
    return Command(effect={WRITE: why}, flags=flags, values={values: TEXT}, rest=REMOVE)


COMMANDS: dict[str, Command] = {
    "cp": copies(
        "--no-clobber -u --update -a --archive -d -H -L --dereference -P --no-dereference -p -r -R --recursive"
    ),
    "mv": copies("--no-clobber -u --update --strip-trailing-slashes", moves_files="*"),
    "ln": copies("-s --symbolic -r --relative -d -F -L -P"),
    "install": Command(
        effect={WRITE: "writes files"},
        flags="-b -C -c -d -D -p -s -T -v",
        values={"-m --mode -o --owner -g --group -S --suffix": TEXT, "-t --target-directory": WRITE},
        expression="files.copy",
    ),
    "rsync": Command(
        flags="-v --verbose -q --quiet -c --checksum -a --archive -r --recursive -R --relative -b --backup -u --update "
        "--inplace --append -d --dirs -l --links -L --copy-links -k --copy-dirlinks -K --keep-dirlinks -H --hard-links "
        "-p --perms -E --executability -A --acls -X --xattrs -o --owner -g --group -D --devices --specials -t --times "
        "-O --omit-dir-times -J -S --sparse -n --dry-run -W --whole-file -x --one-file-system --existing "
        "--ignore-existing --remove-source-files --remove-sent-files --del --delete --delete-before --delete-during "
        "--delete-delay --delete-after --delete-excluded --delete-missing-args --force --ignore-errors --partial -m "
        "--prune-empty-dirs --numeric-ids -I --ignore-times --size-only -z --compress -C --cvs-exclude -0 --from0 -s "
        "--stats -8 -h --human-readable --progress -P -i --itemize-changes --list-only -V --version",
        values={
            "-f --filter --exclude --include --chmod --chown --max-size --min-size --bwlimit --info --debug --timeout "
            "--suffix --out-format --max-delete -B --block-size": TEXT,
            "-e --rsh --rsync-path": PROGRAM,
            "--exclude-from --include-from --files-from --compare-dest --link-dest --copy-dest": READ,
            "--log-file --backup-dir --partial-dir -T --temp-dir": WRITE,
        },
        expression="files.copy",
        moves_files="--remove-source-files --remove-sent-files",
        clears="--del --delete --delete-before --delete-during --delete-delay --delete-after --delete-excluded "
        "--delete-missing-args",
    ),
    "rm": removes("removes files", "-f --force -i -I -r -R --recursive -d --dir -v --verbose"),
    "rmdir": removes("removes folders", "-p --parents -v --verbose"),
    "shred": removes("overwrites files", "-f -u -v -x -z", "-n -s"),
    "unlink": removes("removes a file", ""),
    "srm wipe trash trash-put rimraf safe-rm": removes(
        "removes files", "-f -i -r -R -v -s -z --force --recursive --verbose"
    ),
    "gio": Command(
        subcommands={
            **dict.fromkeys(("trash", "remove"), removes("removes files", "-f --force")),
            "move": copies("-p --progress -C --no-copy-fallback", moves_files="*"),
        }
    ),
    "rclone": Command(
        subcommands={
            **dict.fromkeys(
                "purge delete deletefile rmdir rmdirs cleanup".split(),
                removes("removes files", "--rmdirs --leave-root"),
            ),
            **dict.fromkeys(("move", "moveto"), copies("-P --progress", moves_files="*")),
            "sync": copies("-P --progress")._replace(clears="*"),
        }
    ),
    **dict.fromkeys(
        ("tmpreaper", "tmpwatch"),
        Command(
            effect={WRITE: "removes old files"},
            flags="-a --all -f --force -m --mtime -u --atime -c --ctime -v --verbose",
            operands=(TEXT,),
            rest=REMOVE,
        ),
    ),
    "mkdir": Command(
        effect={WRITE: "makes folders"}, flags="-p --parents -v --verbose", values={"-m --mode": TEXT}, rest=WRITE
    ),
    "touch": Command(
        effect={WRITE: "creates files or changes their times"},
        flags="-a -c --no-create -f -h --no-dereference -m",
        values={"-d --date -t": TEXT, "-r --reference": LOOK},
        rest=WRITE,
    ),
    "tee": Command(flags="-a --append -i --ignore-interrupts -p", expression="files.copies_of_input"),
    "truncate": Command(
        effect={WRITE: "changes the size of files"},
        flags="-c --no-create -o --io-blocks",
        values={"-s --size": TEXT, "-r --reference": LOOK},
        rest=WRITE,
    ),
    "mktemp": always(WRITE, "creates a file or folder"),
    "mkfifo": always(WRITE, "creates a pipe"),
    "mknod": always(WRITE, "creates a special file"),
    "split": Command(
        effect={WRITE: "writes the parts to files"},
        values={"-a -b --bytes -l --lines -n --number -C --line-bytes": TEXT, "--filter": PROGRAM},
        operands=(READ, WRITE),
    ),
    "csplit": always(WRITE, "writes the parts to files"),
    "dd": always(WRITE, "writes to a file or device (of=)"),
    "link": Command(effect={WRITE: "makes a link"}, operands=(READ, WRITE)),
    "sponge": Command(effect={WRITE: "writes its input"}, flags="-a", rest=WRITE),
    "chmod chown chgrp chattr setfacl": Command(
        effect={WRITE: "changes who may use files"},
        flags="-R --recursive -v --verbose -c --changes -f --silent -h",
        operands=(TEXT,),
        rest=WRITE,
    ),
    "sync": always(STATE, "writes out what the system holds back"),
    "stty reset": always(STATE, "changes the terminal"),
    "reboot shutdown halt poweroff init telinit": always(STATE, "stops the machine"),
    "mount umount swapon swapoff mkfs fdisk parted insmod rmmod modprobe losetup": always(
        STATE, "changes disks or the kernel"
    ),
    "useradd userdel usermod groupadd groupdel passwd chpasswd visudo chsh": always(STATE, "changes accounts"),
    "logger wall write mesg service launchctl": always(STATE, "changes the system"),
    "scp sftp ftp telnet nc ncat netcat socat nmap ping ping6 traceroute tracepath dig host nslookup whois aria2c "
    "http https mail sendmail": always(NETWORK, "reaches the network"),
    "ex view vimdiff pico": always(PROGRAM, "an editor starts programs and writes files"),
}
