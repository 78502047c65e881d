"""
The settings of git that cannot make it run a program (git-config(1)): all others count as if they could.

Names are compared in lower case, as `section.subsection.key`.
"""

from handrail.lazy import lazy_pattern

SECTIONS = (
    "add advice am apply author blame checkout clean clone color column committer commitgraph feature fetch fsck grep "
    "i18n index init[.]defaultbranch log lsrefs mailinfo mailmap notes pack pretty pull push receive remotes repack "
    "rerere revert showbranch sparse splitindex stash status transfer user versionsort worktree"
)
KEYS = {
    "core": "abbrev alternaterefsprefixes attributesfile autocrlf bare bigfilethreshold checkroundtripencoding "
    "checkstat commentchar commentstring commitgraph compression createobject deltabasecachelimit eol excludesfile "
    "filemode filesreflocktimeout fsync fsyncmethod fsyncobjectfiles hidedotfiles ignorecase ignorestat "
    "logallrefupdates longpaths loosecompression multipackindex notesref packedgitlimit packedgitwindowsize "
    "packedrefstimeout precomposeunicode prefersymlinkrefs preloadindex quotepath fscache "
    "repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex symlinks "
    "trustctime untrackedcache usereplacerefs warnambiguousrefs whitespace",
    "branch": "autosetupmerge autosetuprebase sort",
    "branch[.].+": "description merge pushremote rebase remote gh-merge-base vscode-merge-base",
    "commit": "cleanup gpgsign status template verbose",
    "credential(?:[.].+)?": "username usehttppath",
    "diff": "algorithm autorefreshindex colormoved colormovedws context dirstat ignoresubmodules "
    "indentheuristic interhunkcontext mnemonicprefix noprefix orderfile relative renamelimit renames statgraphwidth "
    "submodule suppressblankempty wordregex wserrorhighlight",
    "diff[.].+": "binary cachetextconv wordregex xfuncname",
    "difftool": "prompt trustexitcode",
    "extensions": "objectformat partialclone refstorage worktreeconfig",
    "format": "attach cc coverletter from headers notes numbered pretty signoff signature "
    "subjectprefix thread to useautobase",
    "gc": "aggressivedepth aggressivewindow auto autodetach autopacklimit bigpackthreshold cruftpacks logexpiry "
    "maxcruftsize packrefs pruneexpire reflogexpire reflogexpireunreachable rerereresolved rerereunresolved "
    "worktreepruneexpire writecommitgraph",
    "gc[.].+": "reflogexpire reflogexpireunreachable",
    "filter[.].+": "required",
    "gpg": "format mintrustlevel",
    "gpg[.]ssh": "allowedsignersfile revocationfile",
    "gui": "encoding",
    "help": "format",
    "http(?:[.].+)?": "curloptresolve delegation emptyauth extraheader followredirects keepalivecount keepaliveidle "
    "keepaliveinterval lowspeedlimit lowspeedtime maxrequests minsessions noepsv pinnedpubkey postbuffer proactiveauth "
    "proxy proxyauthmethod proxysslcainfo proxysslcert proxysslcertpasswordprotected proxysslkey schannelcheckrevoke "
    "schannelusesslcainfo sslbackend sslcainfo sslcapath sslcert sslcertpasswordprotected sslcerttype sslcipherlist "
    "sslkey sslkeytype ssltry sslverify sslversion useragent version",
    "interactive": "singlekey",
    "lfs(?:[.].+)?": "access activitytimeout concurrenttransfers fetchexclude fetchinclude locksverify pushurl url",
    "maintenance": "auto autodetach strategy",
    "maintenance[.].+": "auto batchsize enabled schedule",
    "merge": "autostash branchdesc conflictstyle defaulttoupstream directoryrenames ff log renamelimit renames "
    "renormalize stat suppressdest verbosity verifysignatures",
    "merge[.].+": "name recursive",
    "mergetool(?:[.].+)?": "hideresolved keepbackup keeptemporaries prompt trustexitcode writetotemp",
    "protocol": "version",
    "rebase": "abbreviatecommands autosquash autostash backend forkpoint maxlabellength missingcommitscheck "
    "rebasemerges reschedulefailedexec stat updaterefs",
    "remote": "pushdefault",
    "remote[.].+": "fetch mirror partialclonefilter promisor proxy proxyauthmethod prune prunetags push pushurl "
    "skipdefaultupdate skipfetchall tagopt url",
    "ssh": "variant",
    "submodule": "active alternateerrorstrategy alternatelocation fetchjobs propagatebranches recurse",
    "submodule[.].+": "active branch fetchrecursesubmodules ignore url",
    "tag": "forcesignannotated gpgsign sort",
    "tar": "umask",
    "uploadpack": "allowanysha1inwant allowfilter allowreachablesha1inwant allowtipsha1inwant",
    "url[.].+": "insteadof pushinsteadof",
}
SWITCH = "(?i:true|false|yes|no|on|off|0|1|)"
# These values name no program, or a plain one of the system.
VALUES = {
    "core[.]hookspath": "/dev/null",
    "help[.]autocorrect": "0|never|prompt|show|(?i:false|no|off)",
    "core[.]protect(?:hfs|ntfs)": "(?i:true)",
    "(?:diff|merge)[.](?:gui)?tool": "[A-Za-z0-9_]+",
    "filter[.].+[.](?:clean|smudge|process)": "",
    "core[.]fsmonitor": SWITCH,
    "core[.]pager": "|cat|less|more",
    "pager[.].+": f"{SWITCH}|cat|less|more",
    "core[.]editor|sequence[.]editor": "|:|true|cat|vi|vim|nvim|nano|emacs|code --wait",
    "credential(?:[.].+)?[.]helper": r"|store|cache(?: --timeout=\d+)?|osxkeychain|manager|wincred|libsecret",
    "diff[.]external": "",
}
HARMLESS = lazy_pattern(
    "(?:"
    + "|".join(
        [f"(?:{'|'.join(SECTIONS.split())})(?:[.].+)?"]
        + [f"{section}[.](?:{'|'.join(keys.split())})" for section, keys in KEYS.items()]
    )
    + r")\Z"
)
HARMLESS_VALUES = [
    (lazy_pattern(rf"(?:{keys})\Z"), lazy_pattern(rf"(?:{values})\Z")) for keys, values in VALUES.items()
]


def is_harmless(key: str, value: str | None) -> bool:
    """Whether a setting cannot make git run a program; `value` None: it is not known."""
    name = key.lower()
    if HARMLESS.match(name):
        return True
    return value is not None and any(keys.match(name) and values.match(value) for keys, values in HARMLESS_VALUES)
