"""
The settings of git that cannot make it run a program (git-config(1)): all others count as if they could.

Names are compared in lower case, as `section.subsection.key`.
"""

from handrail.lazy import lazy_pattern

SECTIONS = (
    "add advice am apply author blame checkout clean clone color column committer commitgraph feature fetch fsck "
    "grep http i18n index init[.]defaultbranch log lsrefs mailinfo mailmap maintenance notes pack pretty pull push "
    "rebase receive remotes repack rerere revert showbranch sparse splitindex stash status transfer user versionsort "
    "worktree"
)
KEYS = {
    "core": "abbrev alternaterefsprefixes attributesfile autocrlf bare bigfilethreshold checkroundtripencoding "
    "checkstat commentchar commentstring commitgraph compression createobject deltabasecachelimit eol excludesfile "
    "filemode filesreflocktimeout fsync fsyncmethod fsyncobjectfiles hidedotfiles ignorecase ignorestat "
    "logallrefupdates longpaths loosecompression multipackindex notesref packedgitlimit packedgitwindowsize "
    "packedrefstimeout precomposeunicode prefersymlinkrefs preloadindex protecthfs protectntfs quotepath "
    "repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone splitindex symlinks "
    "trustctime untrackedcache usereplacerefs warnambiguousrefs whitespace",
    "branch": "autosetupmerge autosetuprebase sort",
    "branch[.].+": "description merge pushremote rebase remote",
    "commit": "cleanup gpgsign status template verbose",
    "credential(?:[.].+)?": "username usehttppath",
    "diff": "algorithm autorefreshindex colormoved colormovedws context dirstat guitool ignoresubmodules "
    "indentheuristic interhunkcontext mnemonicprefix noprefix orderfile relative renamelimit renames statgraphwidth "
    "submodule suppressblankempty tool wordregex wserrorhighlight",
    "diff[.].+": "binary cachetextconv wordregex xfuncname",
    "difftool": "prompt trustexitcode",
    "extensions": "objectformat partialclone refstorage worktreeconfig",
    "format": "attach cc coverletter from headers notes numbered outputdirectory pretty signoff signature "
    "subjectprefix suffix thread to useautobase",
    "gc": "aggressivedepth aggressivewindow auto autodetach autopacklimit bigpackthreshold cruftpacks logexpiry "
    "maxcruftsize packrefs pruneexpire reflogexpire reflogexpireunreachable rerereresolved rerereunresolved "
    "worktreepruneexpire writecommitgraph",
    "gc[.].+": "reflogexpire reflogexpireunreachable",
    "gpg": "format mintrustlevel",
    "gpg[.]ssh": "allowedsignersfile revocationfile",
    "help": "autocorrect format",
    "interactive": "singlekey",
    "lfs(?:[.].+)?": "access activitytimeout concurrenttransfers fetchexclude fetchinclude locksverify pushurl url",
    "merge": "autostash branchdesc conflictstyle defaulttoupstream directoryrenames ff guitool log renamelimit renames "
    "renormalize stat suppressdest tool verbosity verifysignatures",
    "merge[.].+": "name recursive",
    "mergetool(?:[.].+)?": "hideresolved keepbackup keeptemporaries prompt trustexitcode writetotemp",
    "protocol": "version",
    "remote": "pushdefault",
    "remote[.].+": "fetch mirror partialclonefilter promisor proxy proxyauthmethod prune prunetags push pushurl "
    "skipdefaultupdate skipfetchall tagopt url",
    "ssh": "variant",
    "submodule": "active alternateerrorstrategy alternatelocation fetchjobs propagatebranches recurse",
    "submodule[.].+": "active branch fetchrecursesubmodules ignore url",
    "tag": "forcesignannotated gpgsign sort",
    "tar": "umask",
    "url[.].+": "insteadof pushinsteadof",
}
SWITCH = "true|false|yes|no|on|off|0|1|"
# What these name is switched off, or a plain program of the system.
VALUES = {
    "core[.]fsmonitor": SWITCH,
    "core[.]pager": "|cat|less|more",
    "pager[.].+": f"{SWITCH}|cat|less|more",
    "core[.]editor|sequence[.]editor": "|:|true|cat|vi|vim|nvim|nano|emacs|code --wait",
    "credential(?:[.].+)?[.]helper|diff[.]external": "",
}
HARMLESS = lazy_pattern(
    "(?:"
    + "|".join(
        [f"(?:{'|'.join(SECTIONS.split())})(?:[.].+)?"]
        + [f"{section}[.](?:{'|'.join(keys.split())})" for section, keys in KEYS.items()]
    )
    + r")\Z"
)
HARMLESS_VALUE = lazy_pattern("|".join(f"(?:{keys})=(?:{values})\\Z" for keys, values in VALUES.items()))


def is_harmless(key: str, value: str | None) -> bool:
    """Whether a setting cannot make git run a program; `value` None: it is not known."""
    name = key.lower()
    return HARMLESS.match(name) is not None or (
        value is not None and HARMLESS_VALUE.match(f"{name}={value}") is not None
    )
