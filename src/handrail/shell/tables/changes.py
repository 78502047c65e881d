"""
Programs that are never read-only, listed so that the explanation says why and deny rules see the files they write.

Options are listed as far as needed to tell files from values; one that is not listed only adds a reason.
"""

from handrail.shell.tables.coreutils import COREUTILS
from handrail.shell.tables.format import LOOK, NETWORK, PROGRAM, READ, REMOVE, STATE, TEXT, WRITE, Command, Role

MODES = "-f --force -i --interactive -v --verbose -n -T --no-target-directory -b"


def never(role: Role, why: str) -> Command:
    """Programs whose words are not looked at: they always do this."""
    return Command(source="the manual page of each", effect={role: why}, plain=True, rest=TEXT)


def copying(page: str, flags: str, moves_files: str = "") -> Command:
    return Command(
        source=f"{COREUTILS}, {page}(1)",
        effect={WRITE: "writes files"},
        flags=f"{MODES} {flags}",
        values={"-S --suffix": TEXT, "-t --target-directory": WRITE},
        expression="files.copy",
        moves_files=moves_files,
    )


def removing(source: str, why: str, flags: str, values: str = "") -> Command:
    return Command(source, effect={WRITE: why}, flags=flags, values={values: TEXT}, rest=REMOVE)


COMMANDS: dict[str, Command] = {
    "cp": copying(
        "cp",
        "--no-clobber -u --update -a --archive -d -H -L --dereference -P --no-dereference -p -r -R --recursive",
    ),
    "mv": copying("mv", "--no-clobber -u --update --strip-trailing-slashes", moves_files="*"),
    "ln": copying("ln", "-s --symbolic -r --relative -d -F -L -P"),
    "install": Command(
        source=f"{COREUTILS}, install(1)",
        effect={WRITE: "writes files"},
        flags="-b -C -c -d -D -p -s -T -v",
        values={"-m --mode -o --owner -g --group -S --suffix": TEXT, "-t --target-directory": WRITE},
        expression="files.copy",
    ),
    "rsync": Command(
        source="rsync 3.2, rsync(1)",
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
    "rm": removing(f"{COREUTILS}, rm(1)", "removes files", "-f --force -i -I -r -R --recursive -d --dir -v --verbose"),
    "rmdir": removing(f"{COREUTILS}, rmdir(1)", "removes folders", "-p --parents -v --verbose"),
    "shred": removing(f"{COREUTILS}, shred(1)", "overwrites files", "-f -u -v -x -z", "-n -s"),
    "unlink": removing(f"{COREUTILS}, unlink(1)", "removes a file", ""),
    **dict.fromkeys(
        "srm wipe trash trash-put rimraf safe-rm".split(),
        removing("the manual page of each", "removes files", "-f -i -r -R -v -s -z --force --recursive --verbose"),
    ),
    "mkdir": Command(
        source=f"{COREUTILS}, mkdir(1)",
        effect={WRITE: "makes folders"},
        flags="-p --parents -v --verbose",
        values={"-m --mode": TEXT},
        rest=WRITE,
    ),
    "touch": Command(
        source=f"{COREUTILS}, touch(1)",
        effect={WRITE: "creates files or changes their times"},
        flags="-a -c --no-create -f -h --no-dereference -m",
        values={"-d --date -t": TEXT, "-r --reference": LOOK},
        rest=WRITE,
    ),
    "tee": Command(
        source=f"{COREUTILS}, tee(1)",
        effect={WRITE: "writes its input to files"},
        flags="-a --append -i --ignore-interrupts -p",
        rest=WRITE,
    ),
    "truncate": Command(
        source=f"{COREUTILS}, truncate(1)",
        effect={WRITE: "changes the size of files"},
        flags="-c --no-create -o --io-blocks",
        values={"-s --size": TEXT, "-r --reference": LOOK},
        rest=WRITE,
    ),
    "mktemp": never(WRITE, "creates a file or folder"),
    "mkfifo": never(WRITE, "creates a pipe"),
    "mknod": never(WRITE, "creates a special file"),
    "split": Command(
        source=f"{COREUTILS}, split(1)",
        effect={WRITE: "writes the parts to files"},
        values={"-a -b --bytes -l --lines -n --number -C --line-bytes": TEXT, "--filter": PROGRAM},
        operands=(READ, WRITE),
    ),
    "csplit": never(WRITE, "writes the parts to files"),
    "dd": never(WRITE, "writes to a file or device (of=)"),
    "link": Command(source=f"{COREUTILS}, link(1)", effect={WRITE: "makes a link"}, operands=(READ, WRITE)),
    "sponge": Command(source="moreutils 0.67, sponge(1)", effect={WRITE: "writes its input"}, flags="-a", rest=WRITE),
    **dict.fromkeys(
        "chmod chown chgrp chattr setfacl".split(),
        Command(
            source="chmod(1), chown(1), chattr(1), setfacl(1)",
            effect={WRITE: "changes who may use files"},
            flags="-R --recursive -v --verbose -c --changes -f --silent -h",
            operands=(TEXT,),
            rest=WRITE,
        ),
    ),
    "sync": never(STATE, "writes out what the system holds back"),
    **dict.fromkeys("stty reset".split(), never(STATE, "changes the terminal")),
    **dict.fromkeys("reboot shutdown halt poweroff init telinit".split(), never(STATE, "stops the machine")),
    **dict.fromkeys(
        "mount umount swapon swapoff mkfs fdisk parted insmod rmmod modprobe losetup".split(),
        never(STATE, "changes disks or the kernel"),
    ),
    **dict.fromkeys(
        "useradd userdel usermod groupadd groupdel passwd chpasswd visudo chsh".split(),
        never(STATE, "changes accounts"),
    ),
    **dict.fromkeys("logger wall write mesg service launchctl".split(), never(STATE, "changes the system")),
    **dict.fromkeys(
        "scp sftp ftp telnet nc ncat netcat socat nmap ping ping6 traceroute tracepath dig host nslookup whois aria2c "
        "http https mail sendmail".split(),
        never(NETWORK, "reaches the network"),
    ),
    **dict.fromkeys("ex view vimdiff pico".split(), never(PROGRAM, "an editor starts programs and writes files")),
}
