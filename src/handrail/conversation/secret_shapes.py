"""The shapes of secrets: keys and tokens of many vendors, private keys, passwords in addresses and command lines."""

from typing import TypeAlias

Shape: TypeAlias = tuple[str, str, str]
"""A label, a literal that is part of every match, and the pattern."""

EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # in JSON, a line begins behind a letter
_VALUE = r"(?![$<{\[])[^\s\"'\\,;]"  # not the name of a variable, not something already removed

_HEADER_VALUE = (
    r"[\"']?\s{0,4}:\s{0,4}[\"']?"
    rf"(?:[A-Za-z][\w-]{{0,20}}\s{{1,4}})?(?P<secret>{_VALUE}{{8,}})"
)
_BARE = r"(?![$<{\[%(])[^\s\"'\\,;&()<>{}$\[\]]"
_END = r"(?![\w(.\[])"
_ENV_LINE = r"[ \t]*(?:(?:export|ENV|set)[ \t]{1,4})?[A-Z0-9_]{0,60}"
_ID_AND_KEY = r"[0-9A-Z]{16}[\"']?[\s,:;]{1,3}[\"']?(?P<secret>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])"

# what stands before a literal: then the literal comes first, and places of it are found without the pattern
_SIGNER = r"(?:(?<=[?&]x-amz-signature=)|(?<=[?&]x-goog-signature=))"
_AMZ = r"(?<=[?&]x-amz-security-token=)"
_QUERY_KEY = "(?:" + "|".join(f"(?<=[?&]{name}key=)" for name in ("api", "api[_-]", "access", "access[_-]")) + ")"


def behind_edge(literal: str) -> str:
    """The pattern that a literal ends here which begins at an edge."""
    return rf"(?:(?<={literal})(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal}))"


_TOKEN_NAMES = ("private", "job", "deploy", "x-vault", "x-auth", "x-gitlab", "x-access", "x-api")
_TOKEN_HEADER = "(?:" + "|".join(behind_edge(f"{name}-token") for name in _TOKEN_NAMES) + ")"

# PRIVATE, RSA PRIVATE, EC PRIVATE, OPENSSH PRIVATE and ENCRYPTED PRIVATE, behind "-----BEGIN " in base64
_CODED_KINDS = r"QUklWQVRFIEtF|SU0EgUFJJVkFURSBL|FQyBQUklWQVRFIEtF|PUEVOU1NIIFBSSVZBVEUg|FTkNSWVBURUQgUFJJ"

# A group named `secret` is what is removed, else all of it. Nothing without a bound is looked for from each of many
# beginnings. A pattern without case begins with its literal, which is in small letters, perhaps behind an edge.

IN_RUNS: dict[str, tuple[Shape, ...]] = {
    "_": (
        ("github-token", "github_pat_", r"github_pat_\w{22,}"),
        ("docker-token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
        ("grafana-token", "glsa_", rf"{EDGE}glsa_[\w+/=-]{{32,}}"),
        ("grafana-token", "glc_", rf"{EDGE}glc_[\w+/=-]{{32,}}"),
        ("figma-token", "fig", rf"{EDGE}fig[dour]{{1,2}}_[\w-]{{30,}}"),
        ("sentry-token", "sntry", rf"{EDGE}sntry[su]_[\w+/=-]{{30,}}"),
        ("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}"),
        ("fly-token", "fm2_", rf"{EDGE}fm2_[\w+/=-]{{40,}}"),
        ("webhook", "whsec_", rf"{EDGE}whsec_[A-Za-z0-9+/=]{{24,}}"),
        ("vercel-token", "vercel_blob_rw_", r"vercel_blob_rw_\w{30,}"),
        ("pinecone-key", "pcsk_", rf"{EDGE}pcsk_\w{{40,}}"),
        ("1password-token", "ops_eyJ", r"ops_eyJ[\w-]{40,}"),
        ("together-key", "tgp_v1_", rf"{EDGE}tgp_v1_[\w-]{{40,}}"),
    ),
    "-": (
        ("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{16,}"),
        ("api-key", "sk-", rf"{EDGE}sk-(?!ant-)(?=[A-Za-z_-]{{0,200}}[0-9])[\w-]{{20,}}"),
        ("gitlab-token", "gl", rf"{EDGE}gl(?:pat|rt|dt|cbt|ptt|ft|imt|agent|soat|oas)-[\w-]{{18,}}"),
        ("slack-token", "xapp-", rf"{EDGE}xapp-[A-Za-z0-9-]{{20,}}"),
        ("pypi-token", "pypi-", r"pypi-[\w-]{40,}"),
        ("google-key", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
        ("heroku-key", "HRKU-", rf"{EDGE}HRKU-[\w-]{{30,}}"),
        ("square-token", "sq0", rf"{EDGE}sq0(?:csp|atp|idp)-[\w-]{{22,}}"),
        ("nvidia-key", "nvapi-", r"nvapi-[\w-]{40,}"),
        ("tavily-key", "tvly-", rf"{EDGE}tvly-(?=[A-Za-z_-]{{0,60}}[0-9])[\w-]{{20,}}"),
        ("context7-key", "ctx7sk-", r"ctx7sk-[0-9a-f-]{36}"),
        ("plaid-token", "access-", rf"{EDGE}access-(?:production|development|sandbox)-[0-9a-f]{{8}}-[0-9a-f-]{{27}}"),
    ),
    ".": (
        ("google-token", "ya29.", r"ya29\.[\w-]{20,}"),
        ("sendgrid-key", "SG.", rf"{EDGE}SG\.[\w-]{{16,}}\.[\w-]{{32,}}"),
        ("dropbox-token", "sl.", rf"{EDGE}sl\.[\w-]{{60,}}"),
        ("vault-token", "hvs.", rf"{EDGE}hvs\.[\w-]{{24,}}"),
        ("vault-token", "hvb.", rf"{EDGE}hvb\.[\w-]{{24,}}"),
        ("doppler-token", "dp.", rf"{EDGE}dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{{36,}}"),
        ("mapbox-token", "sk.eyJ", rf"{EDGE}sk\.eyJ[\w-]{{40,}}\.[\w-]{{20,}}"),
        ("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
        # the second half passes over what begins like one, so that its end is looked for once
        ("jwt", "eyJ", r"(?P<secret>eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,})|eyJ[\w-]{8,}"),
    ),
    ":": (
        ("telegram-token", ":AA", r"(?:(?<!\w)|(?<=/bot))[0-9]{8,10}:AA[\w-]{30,}"),
        ("laravel-key", "base64:", r"APP_KEY=[\"']?(?P<secret>base64:[A-Za-z0-9+/]{43}=)"),
    ),
    "/": (
        ("google-token", "1//0", r"(?<!\w)1//0[\w-]{20,}"),
        ("package-index", "/t/", r"(?<=/t/)[a-z]{2}-(?=[\w-]{0,60}[0-9])[\w-]{20,}(?=/)"),
        ("webhook", "hooks.slack.com/", r"(?<=hooks\.slack\.com/)(?:services|workflows)/[\w/-]{20,}"),
        ("webhook", "/api/webhooks/", r"(?<=/api/webhooks/)[0-9]{15,}/[\w-]{40,}"),
    ),
    "=": (("signed-url", "sig=", r"(?<=[?&])sig=(?P<secret>[\w%+/=-]{32,})"),),
    "$": (
        ("password-hash", "$6$", r"\$6\$(?:rounds=[0-9]{1,9}\$)?[\w./]{1,16}\$[\w./]{86}"),
        ("password-hash", "$5$", r"\$5\$(?:rounds=[0-9]{1,9}\$)?[\w./]{1,16}\$[\w./]{43}"),
        ("password-hash", "$y$", r"\$y\$[\w./]{1,8}\$[\w./]{4,86}\$[\w./]{43}"),
        ("password-hash", "$2", r"\$2[abxy]\$[0-9]{2}\$[\w./]{53}"),
        ("password-hash", "$apr1$", r"\$apr1\$[\w./]{1,8}\$[\w./]{22}"),
        (
            "password-hash",
            "$argon2",
            r"\$argon2(?:id|i|d)\$v=[0-9]{1,3}\$[\w=,]{5,40}\$[\w+/=]{8,100}\$[\w+/=]{16,200}",
        ),
    ),
    "~": (("azure-key", "Q~", rf"{EDGE}[\w~.-]{{3}}[78]Q~[\w~.-]{{31,40}}"),),
    "A": (
        ("google-key", "AIza", r"AIza[\w-]{35}"),
        ("atlassian-token", "ATATT3", rf"{EDGE}ATATT3[\w=-]{{50,}}"),
        ("atlassian-token", "ATCTT3", rf"{EDGE}ATCTT3[\w=-]{{50,}}"),
        ("aws-key", "ABSK", rf"{EDGE}ABSK[A-Za-z0-9+/]{{100,}}={{0,2}}"),
    ),
    "L": (
        (
            "private-key",
            "LS0tLS1CRUdJTiB",
            rf"LS0tLS1CRUdJTiB(?:{_CODED_KINDS})[A-Za-z0-9+/]{{20,}}={{0,2}}",
        ),
    ),
}
"""
Shapes whose literal is part of a long run of letters, digits and signs (`secret_search.RUN_LENGTH`), by a sign or a
letter that is part of it too.
"""

WITH_WORD: dict[str, tuple[Shape, ...]] = {
    "_": (
        ("stripe-key", "sk_", rf"{EDGE}sk_(?:live|test)_[A-Za-z0-9]{{16,}}"),
        ("stripe-key", "rk_", rf"{EDGE}rk_(?:live|test)_[A-Za-z0-9]{{16,}}"),
        ("github-token", "gh", r"gh[oprsu]_[A-Za-z0-9]{30,}"),
        ("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
        ("huggingface-token", "hf_", rf"{EDGE}hf_[A-Za-z0-9]{{30,}}"),
        ("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{30,}"),
        ("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{40,}"),
        ("resend-key", "re_", rf"{EDGE}re_(?=\w{{0,100}}[0-9])[A-Za-z0-9]{{8,100}}_[A-Za-z0-9]{{16,}}"),
        ("digitalocean-token", "_v1_", rf"{EDGE}do[oprt]_v1_[0-9a-f]{{40,}}"),
        ("shopify-token", "shp", rf"{EDGE}shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}"),
        ("supabase-token", "sbp_", rf"{EDGE}sbp_[0-9a-f]{{40}}"),
        ("replicate-token", "r8_", rf"{EDGE}r8_[A-Za-z0-9]{{30,}}"),
        ("linear-key", "lin_", rf"{EDGE}lin_(?:api|oauth)_[A-Za-z0-9]{{30,}}"),
        ("notion-token", "ntn_", rf"{EDGE}ntn_[A-Za-z0-9]{{40,}}"),
        ("netlify-token", "nfp_", rf"{EDGE}nfp_[A-Za-z0-9]{{36,}}"),
        ("posthog-key", "phx_", rf"{EDGE}phx_[A-Za-z0-9]{{40,}}"),
        ("langsmith-key", "lsv2_", rf"{EDGE}lsv2_(?:pt|sk)_[0-9a-f]{{32}}_\w{{8,}}"),
        ("e2b-key", "e2b_", rf"{EDGE}e2b_[0-9a-f]{{40}}"),
        ("jina-key", "jina_", rf"{EDGE}jina_[A-Za-z0-9]{{50,}}"),
        ("buildkite-token", "bkua_", rf"{EDGE}bkua_[0-9a-f]{{40}}"),
        ("circleci-token", "CCIP", rf"{EDGE}CCIP(?:AT|RJ)_[A-Za-z0-9]{{10,}}_[0-9a-f]{{40}}"),
        ("sourcegraph-token", "sgp_", rf"{EDGE}sgp_(?:[0-9a-f]{{16}}_|local_)?[0-9a-f]{{40}}"),
        ("shippo-token", "shippo_", rf"{EDGE}shippo_(?:live|test)_[0-9a-f]{{40}}"),
        ("elevenlabs-key", "sk_", rf"{EDGE}sk_[0-9a-f]{{48}}(?![0-9a-f])"),
        ("honeycomb-key", "hcaik_", rf"{EDGE}hcaik_[a-z0-9]{{50,}}"),
    ),
    "-": (
        ("xai-key", "xai-", rf"{EDGE}xai-[A-Za-z0-9]{{30,}}"),
        ("mailchimp-key", "-us", rf"{EDGE}[0-9a-f]{{32}}-us[0-9]{{1,2}}(?![A-Za-z0-9])"),
        ("pulumi-token", "pul-", rf"{EDGE}pul-[0-9a-f]{{40}}"),
        ("postman-key", "PMAK-", rf"{EDGE}PMAK-[0-9a-f]{{24}}-[0-9a-f]{{34}}"),
        ("newrelic-key", "NRAK-", rf"{EDGE}NRAK-[A-Z0-9]{{27}}"),
        ("perplexity-key", "pplx-", rf"{EDGE}pplx-[A-Za-z0-9]{{30,}}"),
        ("firecrawl-key", "fc-", rf"{EDGE}fc-[0-9a-f]{{32}}(?![0-9a-f])"),
        ("cerebras-key", "csk-", rf"{EDGE}csk-(?=[a-z]{{0,40}}[0-9])[a-z0-9]{{40,}}"),
    ),
    ".": (
        ("dynatrace-token", "dt0", rf"{EDGE}dt0[a-z][0-9]{{2}}\.[A-Z0-9]{{24}}\.[A-Z0-9]{{64}}"),
        ("airtable-token", "pat", rf"{EDGE}pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}"),
    ),
    "A": (
        ("aws-key", "AKIA", rf"{EDGE}AKIA[0-9A-Z]{{16}}(?![0-9A-Z])"),
        ("aws-key", "ASIA", rf"{EDGE}ASIA[0-9A-Z]{{16}}(?![0-9A-Z])"),
        ("aws-secret", "AKIA", rf"AKIA{_ID_AND_KEY}"),
        ("aws-secret", "ASIA", rf"ASIA{_ID_AND_KEY}"),
        ("artifactory-key", "AKCp", rf"{EDGE}AKCp[A-Za-z0-9]{{50,}}"),
        ("atlassian-token", "ATBB", rf"{EDGE}ATBB[A-Za-z0-9]{{32}}(?![A-Za-z0-9])"),
        ("azure-key", "AZDO", r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])"),
    ),
    "E": (("easypost-key", "EZ", rf"{EDGE}EZ[AT]K[A-Za-z0-9]{{54}}(?![A-Za-z0-9])"),),
    "G": (("google-key", "GOOG1", rf"{EDGE}GOOG1[A-Z0-9]{{20,}}"),),
    "L": (("alibaba-key", "LTAI", rf"{EDGE}LTAI[A-Za-z0-9]{{12,24}}(?![A-Za-z0-9])"),),
    "S": (("twilio-key", "SK", rf"{EDGE}SK[0-9a-f]{{32}}(?![0-9a-f])"),),
    "c": (("cargo-token", "cio", rf"{EDGE}cio[A-Za-z0-9]{{32}}(?![A-Za-z0-9])"),),
    "d": (("databricks-token", "dapi", rf"{EDGE}dapi[0-9a-f]{{32}}"),),
    "o": (("nuget-key", "oy2", rf"{EDGE}oy2[a-z0-9]{{43}}(?![A-Za-z0-9])"),),
}
"""Shapes that are such a run and have a long word of letters and digits in them (`secret_search.WORD_LENGTH`)."""

GATED: dict[str, tuple[Shape, ...]] = {
    "xox": (("slack-token", "xox", r"xox[a-eoprs](?:\.xox[bp])?-[A-Za-z0-9%-]{10,}"),),
    "-signature=": (("signed-url", "-signature=", rf"(?i)-signature={_SIGNER}(?P<secret>[0-9a-f]{{32,}})"),),
    "private-lines:": (
        (
            "private-key",
            "Private-Lines:",
            r"Private-Lines: [0-9]{1,4}\s{1,2}(?P<secret>(?:[A-Za-z0-9+/=]{1,80}\s{0,2}){1,400})",
        ),
    ),
    "secret": (
        ("notion-token", "secret_", rf"{EDGE}secret_[A-Za-z0-9]{{43}}(?![A-Za-z0-9])"),
        ("supabase-key", "sb_secret_", rf"{EDGE}sb_secret_[\w-]{{20,}}"),
        ("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ),
    "key": (
        ("mailgun-key", "key-", rf"{EDGE}key-[0-9a-f]{{32}}(?![0-9a-f])"),
        ("brevo-key", "xkeysib-", r"xkeysib-[0-9a-f]{64}-\w{16}"),
        ("azure-key", "accountkey=", rf"(?i){EDGE}accountkey=(?P<secret>[A-Za-z0-9+/]{{40,}}={{0,2}})"),
        ("azure-key", "sharedaccesskey=", rf"(?i){EDGE}sharedaccesskey=(?P<secret>[A-Za-z0-9+/]{{40,}}={{0,2}})"),
        ("tailscale-key", "tskey-", rf"{EDGE}tskey-[a-z]{{2,12}}-[A-Za-z0-9]{{8,}}-[A-Za-z0-9]{{12,}}"),
        ("aws-key", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=]{24,}"),
        ("private-key", "key-data", r"client-key-data[\"']?:\s{0,4}[\"']?(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
        ("query-key", "key=", rf"(?i)key={_QUERY_KEY}(?P<secret>(?=[\w%.~-]{{0,100}}[0-9])[\w%.~-]{{10,300}})"),
        (
            "private-key",
            "PRIVATE KEY-----",
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
        ),
        (
            "private-key",
            "PRIVATE KEY BLOCK-----",
            r"-----BEGIN PGP PRIVATE KEY BLOCK-----[\s\S]*?(?:-----END PGP PRIVATE KEY BLOCK-----|\Z)",
        ),
        ("header", "api-key", rf"(?i){EDGE}api-key{_HEADER_VALUE}"),
    ),
    "token": (
        ("aws-token", "-security-token=", rf"(?i)-security-token={_AMZ}(?P<secret>[\w%+/=-]{{32,}})"),
        ("paypal-token", "access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{10,}\$[0-9a-f]{32}"),
        ("header", "-token", rf"(?i)-token{_TOKEN_HEADER}{_HEADER_VALUE}"),
    ),
    "pass": (
        (
            "package-index",
            "_password",
            rf"_password(?<![A-Za-z0-9]_password)\s{{0,2}}=\s{{0,2}}[\"']?(?P<secret>{_VALUE}{{6,}})",
        ),
        ("password", "PASSWORD=", rf"PASSWORD=(?P<secret>{_BARE}{{4,300}}+){_END}"),
        (
            "password",
            "PASSWORD=",
            rf"(?m)^{_ENV_LINE}PASSWORD=(?P<secret>(?![$`\"'<{{(%])[^\s\"'`]{{4,300}})[ \t]*\r?$",
        ),
        ("password", "requirepass", r"(?m)^[ \t]*requirepass[ \t]{1,20}[\"']?(?P<secret>[^\s\"']{4,300})"),
        (
            "password",
            "password",
            r"(?i)password(?<=\spassword)\s{1,4}'(?P<secret>(?![$<{\[%:])(?=[^\s']{0,200}[0-9!@#^*+~=])[^\s']{4,200})'",
        ),
        (
            "password",
            "chpasswd",
            rf"{EDGE}echo\s(?:-e\s)?[\"']?[\w.-]{{1,64}}:(?P<secret>{_VALUE}{{4,200}})[\"']?\s?\|\s?(?:sudo\s)?chpasswd",
        ),
        ("password", "sshpass", rf"{EDGE}sshpass\s{{1,4}}-p ?[\"']?(?P<secret>{_VALUE}{{3,200}})"),
        ("password", "pass:", rf"-pass(?:in|out)?[ =][\"']?pass:(?P<secret>{_VALUE}{{3,200}})"),
        (
            "password",
            "password-stdin",
            rf"{EDGE}(?:echo|printf)\s(?:-n\s)?[\"']?(?P<secret>{_VALUE}{{4,200}})[\"']?\s?\|[^\n|;]{{0,200}}--password-stdin",
        ),
    ),
    "pwd": (("password", "pwd=", r"(?i)pwd=(?:(?<=;pwd=)|(?<=;\spwd=)|(?<=;\s\spwd=))(?P<secret>[^;\s\"']{4,200})"),),
    "auth": (
        (
            "package-index",
            "_auth",
            r"_auth(?<![\w.]_auth)(?:Token)?\s{0,2}=\s{0,2}[\"']?(?P<secret>(?![$<{\[])[\w+/=.-]{8,})",
        ),
        (
            "package-index",
            "npmauthident",
            rf"(?i)npmauthident[\"']?\s{{0,2}}:\s{{0,2}}[\"']?(?P<secret>{_VALUE}{{6,}})",
        ),
        ("registry", '"auth', r"\"auth\\{0,7}\"\s{0,4}:\s{0,4}\\{0,7}\"(?P<secret>[A-Za-z0-9+/]{8,}={0,2})\\{0,7}\""),
        ("header", "authorization", rf"(?i){EDGE}authorization{_HEADER_VALUE}"),
    ),
    "login": (
        (
            "password",
            "login",
            rf"(?i){EDGE}login\s{{1,20}}\S{{1,200}}\s{{1,20}}password[ \t]{{1,4}}(?P<secret>[^\s\\]{{3,300}})",
        ),
        ("password", "login", rf"{EDGE}login\s[^\n|;]{{0,100}}?(?<=\s)-p[ =][\"']?(?P<secret>(?!-){_VALUE}{{4,200}})"),
    ),
    "bindpw": (("password", "bindpw", r"(?m)^[ \t]*bindpw[ \t]{1,20}(?P<secret>\S{4,300})"),),
    "identified": (
        (
            "password",
            "identified",
            r"(?i)identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by\s{1,4}[\"'](?P<secret>(?![$<{\[%:])(?=[^\s\"']{0,200}[0-9!@#^*+~=])[^\s\"']{4,200})[\"']",
        ),
    ),
    "cookie": (
        (
            "header",
            "cookie",
            rf"(?i){EDGE}cookie[\"']?\s{{0,4}}:\s{{0,4}}[\"']?(?P<secret>[^\s=;\"']{{1,100}}=[^\n\"']{{8,4000}})",
        ),
    ),
    "earer": (
        ("bearer", "earer", rf"earer{behind_edge('[Bb]earer')}\s{{1,4}}(?P<secret>(?=[^\s]*[0-9]){_VALUE}{{16,}})"),
    ),
}
"""Shapes whose literal has a word in it, in any case, that most texts do not have."""

WITH_FLAG: tuple[Shape, ...] = (
    (
        "password",
        "smb",
        rf"{EDGE}smb[a-z]{{1,10}}\s[^\n|;]{{0,200}}?(?<=\s)-U ?[\"']?[\w.\\/-]{{1,64}}%(?P<secret>{_VALUE}{{4,200}})",
    ),
    (
        "password",
        "curl",
        rf"{EDGE}curl\b[^\n|;]{{0,200}}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{{1,64}}:(?P<secret>{_VALUE}{{3,200}})",
    ),
    (
        "password",
        "mysql",
        rf"{EDGE}mysql\w{{0,20}}\s[^\n|;]{{0,100}}?(?<=\s)-p[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    (
        "password",
        "redis-cli",
        rf"{EDGE}redis-cli\s[^\n|;]{{0,200}}?(?<![\w-])-a\s{{1,4}}[\"']?(?P<secret>{_VALUE}{{4,200}})",
    ),
    (
        "password",
        "zip",
        rf"{EDGE}zip\s[^\n|;]{{0,200}}?(?<=\s)-P\s{{0,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    (
        "password",
        "unzip",
        rf"{EDGE}unzip\s[^\n|;]{{0,200}}?(?<=\s)-P\s{{0,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    ("password", "7z", rf"{EDGE}7z[arz]?\s[^\n|;]{{0,200}}?(?<=\s)-p[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})"),
    (
        "password",
        "ldap",
        rf"{EDGE}ldap[a-z]{{1,10}}\s[^\n|;]{{0,200}}?(?<=\s)-w\s{{0,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    (
        "password",
        "mongo",
        rf"{EDGE}mongo[a-z]{{0,10}}\s[^\n|;]{{0,200}}?(?<=\s)-p\s{{0,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    (
        "password",
        "sudo",
        rf"{EDGE}(?:echo|printf)\s(?:-n\s)?[\"']?(?P<secret>{_VALUE}{{4,200}})[\"']?\s?\|\s?sudo\s(?:-\w{{1,9}}\s){{0,3}}?-S\b",
    ),
)
"""Shapes of a program that takes the secret behind a flag."""

WITH_COLON: tuple[Shape, ...] = (
    ("password", ":5432:", r"(?m)^[^\s:#]{1,100}:5432:[^\s:]{1,63}:[^\s:]{1,63}:(?P<secret>(?![$<{])[^\s:]{4,200})$"),
    ("password", ":*:", r"(?m)^[^\s:#]{1,100}:\*:[^\s:]{1,63}:[^\s:]{1,63}:(?P<secret>(?![$<{])[^\s:]{4,200})$"),
    ("url-password", "://", r"://[^\s/:@]{0,256}:(?P<secret>(?![$<{\[])[^\s/\"'<>]{3,256})@"),
    ("url-token", "://", r"://(?P<secret>(?=[\w-]{0,100}[0-9])[\w-]{20,256})@"),
)

SHAPES: tuple[Shape, ...] = (
    *(shape for table in (IN_RUNS, WITH_WORD, GATED) for shapes in table.values() for shape in shapes),
    *WITH_FLAG,
    *WITH_COLON,
)
