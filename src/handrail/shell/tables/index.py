"""Which module knows which program. Written by scripts/shell_index.py."""

FAMILIES: dict[str, str] = {
    "archives": "tar bsdtar gzip xz bzip2 zstd gunzip unxz bunzip2 unzstd zcat gzcat bzcat xzcat lzcat zstdcat unzip "
    "zipinfo zip 7z 7za 7zr rar cpio ar unrar compress uncompress lz4 lzma",
    "builtins": "cd read test [ [[ source . alias unalias exit return break continue logout caller shift set shopt "
    "export declare typeset local readonly unset let hash wait disown bg fg suspend umask ulimit times dirs pushd "
    "popd getopts history fc enable bind complete compopt compgen",
    "changes": "cp mv ln install rsync rm rmdir shred unlink srm wipe trash trash-put rimraf safe-rm gio rclone "
    "tmpreaper tmpwatch mkdir touch tee truncate mktemp mkfifo mknod split csplit dd link sponge chmod chown chgrp "
    "chattr setfacl sync stty reset reboot shutdown halt poweroff init telinit mount umount swapon swapoff mkfs fdisk "
    "parted insmod rmmod modprobe losetup useradd userdel usermod groupadd groupdel passwd chpasswd visudo chsh "
    "logger wall write mesg service launchctl scp sftp ftp telnet nc ncat netcat socat nmap ping ping6 traceroute "
    "tracepath dig host nslookup whois aria2c http https mail sendmail ex view vimdiff pico",
    "compare": "diff colordiff cmp diff3 sdiff patch",
    "containers": "docker docker-compose podman kubectl helm",
    "coreutils": "true false : echo printf pwd ls dir vdir cat tac nl head tail wc sort uniq cut tr paste join comm "
    "fold fmt expand unexpand pr ptx shuf tsort od base64 base32 basenc md5sum sha1sum sha224sum sha256sum sha384sum "
    "sha512sum b2sum cksum sum shasum stat du df basename dirname realpath readlink printenv",
    "dev": "shellcheck tokei scc bat batcat eza exa",
    "facts": "date hostname id groups whoami logname hostid users who w last uname arch nproc lsb_release sw_vers "
    "uptime tty locale getconf cal ncal seq yes factor numfmt expr sleep bc",
    "forge": "gh glab",
    "git": "git",
    "json_tools": "jq yq xmllint jsonlint gron tomlq xq dasel",
    "machine": "ip ifconfig ss netstat lscpu lsblk lsusb lspci findmnt lsmod dmesg journalctl systemctl sysctl crontab "
    "tput getent",
    "manuals": "man apropos whatis help info which type whereis mandb less more most pg",
    "packages": "pip pip3 uv pipx npm gem conda apt apt-cache apt-get apt-mark dpkg dpkg-query rpm pacman brew snap "
    "cargo rustc rustup rustdoc go gofmt yarn pnpm corepack npx pnpx bunx mvn gradle sbt bundle bundler composer "
    "poetry pdm hatch pipenv",
    "processes": "ps top pgrep pidof pstree lsof free vmstat iostat kill pkill killall",
    "search": "zgrep zegrep zfgrep grep egrep fgrep rgrep find rg fd fdfind ag ack",
    "streams": "sed awk gawk mawk nawk original-awk",
    "versions": "python3 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14 python3.15 python "
    "python2 pypy3 node nodejs ruby php make gmake perl bun redis-cli deno curl wget psql mysql nano dc nginx lua "
    "luajit tmux cmake ld as ninja meson ghc Rscript R vim nvim emacs ed valgrind tsc prettier eslint ruff black mypy "
    "autoconf automake ctest lldb pkg-config ccache bison flex m4 clang-format clang-tidy gpg shfmt pg_dump isort "
    "pyright aws pre-commit virtualenv gcc g++ cc c++ cpp gfortran clang clang++ java javac sqlite3 ffmpeg ffprobe "
    "ocaml openssl",
    "viewers": "column iconv rev tree file hexdump hd xxd strings nm objdump readelf size ldd",
    "wrappers": "sh bash dash rbash timeout nice stdbuf ionice command builtin exec env xargs ash zsh ksh mksh fish "
    "eval trap mapfile readarray jobs nohup sudo doas pkexec su runuser setpriv chroot unshare nsenter setsid chrt "
    "taskset prlimit setarch linux32 linux64 flock watch script unbuffer strace ltrace perf parallel entr busybox "
    "toybox systemd-run ssh fakeroot firejail caffeinate catchsegv dbus-run-session xvfb-run torsocks torify "
    "proxychains rlwrap noglob nocorrect",
}
