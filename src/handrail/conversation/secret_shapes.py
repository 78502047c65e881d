"""The shapes of secrets: keys and tokens of many vendors, private keys, passwords in addresses and command lines."""

import re
from typing import TypeAlias

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"  # in JSON, a line begins behind a letter
_VALUE = r"(?![$<{\[])[^\s\"'\\,;]"  # not the name of a variable, not something already removed

_HEADER_VALUE = (
    r"[\"']?\s{0,4}:\s{0,4}[\"']?"
    rf"(?:[A-Za-z][\w-]{{0,20}}\s{{1,4}})?(?P<secret>{_VALUE}{{8,}})"
)
_BARE = r"(?![$<{\[%(])[^\s\"'\\,;&()<>{}$\[\]]"
_END = r"(?![\w(.\[])"
_ENV_LINE = r"[ \t]*(?:(?:export|ENV|set)[ \t]{1,4})?[A-Z0-9_]{0,60}"
_ID_AND_KEY = r"[0-9A-Z]{16}[\"']?[\s,:;]{1,3}[\"']?(?P<secret>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])"

# PRIVATE, RSA PRIVATE, EC PRIVATE, OPENSSH PRIVATE and ENCRYPTED PRIVATE, behind "-----BEGIN " in base64
_CODED_KINDS = r"QUklWQVRFIEtF|SU0EgUFJJVkFURSBL|FQyBQUklWQVRFIEtF|PUEVOU1NIIFBSSVZBVEUg|FTkNSWVBURUQgUFJJ"

# label, a literal that is part of every match (in small letters if case does not matter), the shape; a group named
# `secret` is what is removed, else all of it; nothing without a bound is looked for from each of many beginnings
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{16,}"),
    ("api-key", "sk-", rf"{_EDGE}sk-(?!ant-)(?=[A-Za-z_-]{{0,200}}[0-9])[\w-]{{20,}}"),
    ("stripe-key", "sk_", rf"{_EDGE}sk_(?:live|test)_[A-Za-z0-9]{{16,}}"),
    ("stripe-key", "rk_", rf"{_EDGE}rk_(?:live|test)_[A-Za-z0-9]{{16,}}"),
    ("github-token", "gh", r"gh[oprsu]_[A-Za-z0-9]{30,}"),
    ("github-token", "github_pat_", r"github_pat_\w{22,}"),
    ("gitlab-token", "gl", rf"{_EDGE}gl(?:pat|rt|dt|cbt|ptt|ft|imt|agent|soat|oas)-[\w-]{{18,}}"),
    ("aws-key", "AKIA", rf"{_EDGE}AKIA[0-9A-Z]{{16}}(?![0-9A-Z])"),
    ("aws-key", "ASIA", rf"{_EDGE}ASIA[0-9A-Z]{{16}}(?![0-9A-Z])"),
    ("aws-secret", "AKIA", rf"AKIA{_ID_AND_KEY}"),
    ("aws-secret", "ASIA", rf"ASIA{_ID_AND_KEY}"),
    ("alibaba-key", "LTAI", rf"{_EDGE}LTAI[A-Za-z0-9]{{12,24}}(?![A-Za-z0-9])"),
    ("azure-key", "Q~", rf"{_EDGE}[\w~.-]{{3}}[78]Q~[\w~.-]{{31,40}}"),
    ("google-token", "1//0", r"(?<!\w)1//0[\w-]{20,}"),
    ("google-key", "AIza", r"AIza[\w-]{35}"),
    ("google-token", "ya29.", r"ya29\.[\w-]{20,}"),
    ("slack-token", "xox", r"xox[a-eoprs](?:\.xox[bp])?-[A-Za-z0-9%-]{10,}"),
    ("slack-token", "xapp-", rf"{_EDGE}xapp-[A-Za-z0-9-]{{20,}}"),
    ("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-token", "pypi-", r"pypi-[\w-]{40,}"),
    ("huggingface-token", "hf_", rf"{_EDGE}hf_[A-Za-z0-9]{{30,}}"),
    ("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{30,}"),
    ("xai-key", "xai-", rf"{_EDGE}xai-[A-Za-z0-9]{{30,}}"),
    ("cargo-token", "cio", rf"{_EDGE}cio[A-Za-z0-9]{{32}}(?![A-Za-z0-9])"),
    ("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{40,}"),
    ("nuget-key", "oy2", rf"{_EDGE}oy2[a-z0-9]{{43}}(?![A-Za-z0-9])"),
    ("docker-token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    ("package-index", "_auth", r"(?<![\w.])_auth(?:Token)?\s{0,2}=\s{0,2}[\"']?(?P<secret>(?![$<{\[])[\w+/=.-]{8,})"),
    ("package-index", "_password", rf"(?<![A-Za-z0-9])_password\s{{0,2}}=\s{{0,2}}[\"']?(?P<secret>{_VALUE}{{6,}})"),
    ("package-index", "npmauthident", rf"(?i)npmauthident[\"']?\s{{0,2}}:\s{{0,2}}[\"']?(?P<secret>{_VALUE}{{6,}})"),
    ("package-index", "/t/", r"(?<=/t/)[a-z]{2}-(?=[\w-]{0,60}[0-9])[\w-]{20,}(?=/)"),
    ("registry", '"auth', r"\"auth\\{0,7}\"\s{0,4}:\s{0,4}\\{0,7}\"(?P<secret>[A-Za-z0-9+/]{8,}={0,2})\\{0,7}\""),
    ("sendgrid-key", "SG.", rf"{_EDGE}SG\.[\w-]{{16,}}\.[\w-]{{32,}}"),
    ("mailgun-key", "key-", rf"{_EDGE}key-[0-9a-f]{{32}}(?![0-9a-f])"),
    ("mailchimp-key", "-us", rf"{_EDGE}[0-9a-f]{{32}}-us[0-9]{{1,2}}(?![A-Za-z0-9])"),
    ("brevo-key", "xkeysib-", r"xkeysib-[0-9a-f]{64}-\w{16}"),
    ("resend-key", "re_", rf"{_EDGE}re_(?=\w{{0,100}}[0-9])[A-Za-z0-9]{{8,100}}_[A-Za-z0-9]{{16,}}"),
    ("twilio-key", "SK", rf"{_EDGE}SK[0-9a-f]{{32}}(?![0-9a-f])"),
    ("azure-key", "accountkey=", rf"(?i){_EDGE}accountkey=(?P<secret>[A-Za-z0-9+/]{{40,}}={{0,2}})"),
    ("azure-key", "sharedaccesskey=", rf"(?i){_EDGE}sharedaccesskey=(?P<secret>[A-Za-z0-9+/]{{40,}}={{0,2}})"),
    ("signed-url", "sig=", r"(?<=[?&])sig=(?P<secret>[\w%+/=-]{32,})"),
    ("signed-url", "-signature=", r"(?i)(?<=[?&])x-(?:amz|goog)-signature=(?P<secret>[0-9a-f]{32,})"),
    ("aws-token", "-security-token=", r"(?i)(?<=[?&])x-amz-security-token=(?P<secret>[\w%+/=-]{32,})"),
    ("google-key", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    ("google-key", "GOOG1", rf"{_EDGE}GOOG1[A-Z0-9]{{20,}}"),
    ("digitalocean-token", "_v1_", rf"{_EDGE}do[oprt]_v1_[0-9a-f]{{40,}}"),
    ("dropbox-token", "sl.", rf"{_EDGE}sl\.[\w-]{{60,}}"),
    ("databricks-token", "dapi", rf"{_EDGE}dapi[0-9a-f]{{32}}"),
    ("vault-token", "hvs.", rf"{_EDGE}hvs\.[\w-]{{24,}}"),
    ("vault-token", "hvb.", rf"{_EDGE}hvb\.[\w-]{{24,}}"),
    ("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    ("shopify-token", "shp", rf"{_EDGE}shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}"),
    ("supabase-token", "sbp_", rf"{_EDGE}sbp_[0-9a-f]{{40}}"),
    ("grafana-token", "glsa_", rf"{_EDGE}glsa_[\w+/=-]{{32,}}"),
    ("grafana-token", "glc_", rf"{_EDGE}glc_[\w+/=-]{{32,}}"),
    ("replicate-token", "r8_", rf"{_EDGE}r8_[A-Za-z0-9]{{30,}}"),
    ("heroku-key", "HRKU-", rf"{_EDGE}HRKU-[\w-]{{30,}}"),
    ("telegram-token", ":AA", r"(?:(?<!\w)|(?<=/bot))[0-9]{8,10}:AA[\w-]{30,}"),
    ("linear-key", "lin_", rf"{_EDGE}lin_(?:api|oauth)_[A-Za-z0-9]{{30,}}"),
    ("notion-token", "ntn_", rf"{_EDGE}ntn_[A-Za-z0-9]{{40,}}"),
    ("notion-token", "secret_", rf"{_EDGE}secret_[A-Za-z0-9]{{43}}(?![A-Za-z0-9])"),
    ("pulumi-token", "pul-", rf"{_EDGE}pul-[0-9a-f]{{40}}"),
    ("artifactory-key", "AKCp", rf"{_EDGE}AKCp[A-Za-z0-9]{{50,}}"),
    ("atlassian-token", "ATATT3", rf"{_EDGE}ATATT3[\w=-]{{50,}}"),
    ("atlassian-token", "ATBB", rf"{_EDGE}ATBB[A-Za-z0-9]{{32}}(?![A-Za-z0-9])"),
    ("figma-token", "fig", rf"{_EDGE}fig[dour]{{1,2}}_[\w-]{{30,}}"),
    ("postman-key", "PMAK-", rf"{_EDGE}PMAK-[0-9a-f]{{24}}-[0-9a-f]{{34}}"),
    ("newrelic-key", "NRAK-", rf"{_EDGE}NRAK-[A-Z0-9]{{27}}"),
    ("sentry-token", "sntry", rf"{_EDGE}sntry[su]_[\w+/=-]{{30,}}"),
    ("doppler-token", "dp.", rf"{_EDGE}dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{{36,}}"),
    ("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}"),
    ("fly-token", "fm2_", rf"{_EDGE}fm2_[\w+/=-]{{40,}}"),
    ("netlify-token", "nfp_", rf"{_EDGE}nfp_[A-Za-z0-9]{{36,}}"),
    ("square-token", "sq0", rf"{_EDGE}sq0(?:csp|atp|idp)-[\w-]{{22,}}"),
    ("webhook", "whsec_", rf"{_EDGE}whsec_[A-Za-z0-9+/=]{{24,}}"),
    ("perplexity-key", "pplx-", rf"{_EDGE}pplx-[A-Za-z0-9]{{30,}}"),
    ("tailscale-key", "tskey-", rf"{_EDGE}tskey-[a-z]{{2,12}}-[A-Za-z0-9]{{8,}}-[A-Za-z0-9]{{12,}}"),
    ("supabase-key", "sb_secret_", rf"{_EDGE}sb_secret_[\w-]{{20,}}"),
    ("vercel-token", "vercel_blob_rw_", r"vercel_blob_rw_\w{30,}"),
    ("posthog-key", "phx_", rf"{_EDGE}phx_[A-Za-z0-9]{{40,}}"),
    ("nvidia-key", "nvapi-", r"nvapi-[\w-]{40,}"),
    ("tavily-key", "tvly-", rf"{_EDGE}tvly-(?=[A-Za-z_-]{{0,60}}[0-9])[\w-]{{20,}}"),
    ("pinecone-key", "pcsk_", rf"{_EDGE}pcsk_\w{{40,}}"),
    ("langsmith-key", "lsv2_", rf"{_EDGE}lsv2_(?:pt|sk)_[0-9a-f]{{32}}_\w{{8,}}"),
    ("e2b-key", "e2b_", rf"{_EDGE}e2b_[0-9a-f]{{40}}"),
    ("firecrawl-key", "fc-", rf"{_EDGE}fc-[0-9a-f]{{32}}(?![0-9a-f])"),
    ("context7-key", "ctx7sk-", r"ctx7sk-[0-9a-f-]{36}"),
    ("jina-key", "jina_", rf"{_EDGE}jina_[A-Za-z0-9]{{50,}}"),
    ("buildkite-token", "bkua_", rf"{_EDGE}bkua_[0-9a-f]{{40}}"),
    ("circleci-token", "CCIP", rf"{_EDGE}CCIP(?:AT|RJ)_[A-Za-z0-9]{{10,}}_[0-9a-f]{{40}}"),
    ("dynatrace-token", "dt0", rf"{_EDGE}dt0[a-z][0-9]{{2}}\.[A-Z0-9]{{24}}\.[A-Z0-9]{{64}}"),
    ("sourcegraph-token", "sgp_", rf"{_EDGE}sgp_(?:[0-9a-f]{{16}}_|local_)?[0-9a-f]{{40}}"),
    ("1password-token", "ops_eyJ", r"ops_eyJ[\w-]{40,}"),
    ("shippo-token", "shippo_", rf"{_EDGE}shippo_(?:live|test)_[0-9a-f]{{40}}"),
    ("easypost-key", "EZ", rf"{_EDGE}EZ[AT]K[A-Za-z0-9]{{54}}(?![A-Za-z0-9])"),
    ("aws-key", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=]{24,}"),
    ("password-hash", "$6$", r"\$6\$(?:rounds=[0-9]{1,9}\$)?[\w./]{1,16}\$[\w./]{86}"),
    ("password-hash", "$5$", r"\$5\$(?:rounds=[0-9]{1,9}\$)?[\w./]{1,16}\$[\w./]{43}"),
    ("password-hash", "$y$", r"\$y\$[\w./]{1,8}\$[\w./]{4,86}\$[\w./]{43}"),
    ("password-hash", "$2", r"\$2[abxy]\$[0-9]{2}\$[\w./]{53}"),
    ("password-hash", "$apr1$", r"\$apr1\$[\w./]{1,8}\$[\w./]{22}"),
    ("password-hash", "$argon2", r"\$argon2(?:id|i|d)\$v=[0-9]{1,3}\$[\w=,]{5,40}\$[\w+/=]{8,100}\$[\w+/=]{16,200}"),
    ("atlassian-token", "ATCTT3", rf"{_EDGE}ATCTT3[\w=-]{{50,}}"),
    ("airtable-token", "pat", rf"{_EDGE}pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}"),
    ("azure-key", "AZDO", r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])"),
    ("aws-key", "ABSK", rf"{_EDGE}ABSK[A-Za-z0-9+/]{{100,}}={{0,2}}"),
    ("cerebras-key", "csk-", rf"{_EDGE}csk-(?=[a-z]{{0,40}}[0-9])[a-z0-9]{{40,}}"),
    ("elevenlabs-key", "sk_", rf"{_EDGE}sk_[0-9a-f]{{48}}(?![0-9a-f])"),
    ("honeycomb-key", "hcaik_", rf"{_EDGE}hcaik_[a-z0-9]{{50,}}"),
    ("together-key", "tgp_v1_", rf"{_EDGE}tgp_v1_[\w-]{{40,}}"),
    ("mapbox-token", "sk.eyJ", rf"{_EDGE}sk\.eyJ[\w-]{{40,}}\.[\w-]{{20,}}"),
    ("plaid-token", "access-", rf"{_EDGE}access-(?:production|development|sandbox)-[0-9a-f]{{8}}-[0-9a-f-]{{27}}"),
    ("paypal-token", "access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{10,}\$[0-9a-f]{32}"),
    ("laravel-key", "base64:", r"APP_KEY=[\"']?(?P<secret>base64:[A-Za-z0-9+/]{43}=)"),
    (
        "private-key",
        "LS0tLS1CRUdJTiB",
        rf"LS0tLS1CRUdJTiB(?:{_CODED_KINDS})[A-Za-z0-9+/]{{20,}}={{0,2}}",
    ),
    ("private-key", "key-data", r"client-key-data[\"']?:\s{0,4}[\"']?(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    ("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("webhook", "hooks.slack.com/", r"(?<=hooks\.slack\.com/)(?:services|workflows)/[\w/-]{20,}"),
    ("webhook", "/api/webhooks/", r"(?<=/api/webhooks/)[0-9]{15,}/[\w-]{40,}"),
    ("password", "PASSWORD=", rf"PASSWORD=(?P<secret>{_BARE}{{4,300}}+){_END}"),
    ("password", "PASSWORD=", rf"(?m)^{_ENV_LINE}PASSWORD=(?P<secret>(?![$`\"'<{{(%])[^\s\"'`]{{4,300}})[ \t]*\r?$"),
    (
        "password",
        "password",
        rf"(?i){_EDGE}login\s{{1,20}}\S{{1,200}}\s{{1,20}}password[ \t]{{1,4}}(?P<secret>[^\s\\]{{3,300}})",
    ),
    ("password", "requirepass", r"(?m)^[ \t]*requirepass[ \t]{1,20}[\"']?(?P<secret>[^\s\"']{4,300})"),
    (
        "password",
        "identified",
        r"(?i)identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by\s{1,4}[\"'](?P<secret>(?![$<{\[%:])(?=[^\s\"']{0,200}[0-9!@#^*+~=])[^\s\"']{4,200})[\"']",
    ),
    (
        "password",
        "password",
        r"(?i)\spassword\s{1,4}'(?P<secret>(?![$<{\[%:])(?=[^\s']{0,200}[0-9!@#^*+~=])[^\s']{4,200})'",
    ),
    (
        "password",
        "chpasswd",
        rf"{_EDGE}echo\s(?:-e\s)?[\"']?[\w.-]{{1,64}}:(?P<secret>{_VALUE}{{4,200}})[\"']?\s?\|\s?(?:sudo\s)?chpasswd",
    ),
    (
        "password",
        "smb",
        rf"{_EDGE}smb[a-z]{{1,10}}\s[^\n|;]{{0,200}}?(?<=\s)-U ?[\"']?[\w.\\/-]{{1,64}}%(?P<secret>{_VALUE}{{4,200}})",
    ),
    ("password", "bindpw", r"(?m)^[ \t]*bindpw[ \t]{1,20}(?P<secret>\S{4,300})"),
    (
        "password",
        "curl",
        rf"{_EDGE}curl\b[^\n|;]{{0,200}}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"'$]{{1,64}}:(?P<secret>{_VALUE}{{3,200}})",
    ),
    ("password", "sshpass", rf"{_EDGE}sshpass\s{{1,4}}-p ?[\"']?(?P<secret>{_VALUE}{{3,200}})"),
    (
        "password",
        "mysql",
        rf"{_EDGE}mysql\w{{0,20}}\s[^\n|;]{{0,100}}?(?<=\s)-p[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    ("password", "login", rf"{_EDGE}login\s[^\n|;]{{0,100}}?(?<=\s)-p[ =][\"']?(?P<secret>(?!-){_VALUE}{{4,200}})"),
    ("password", "pass:", rf"-pass(?:in|out)?[ =][\"']?pass:(?P<secret>{_VALUE}{{3,200}})"),
    (
        "password",
        "redis-cli",
        rf"{_EDGE}redis-cli\s[^\n|;]{{0,200}}?(?<![\w-])-a\s{{1,4}}[\"']?(?P<secret>{_VALUE}{{4,200}})",
    ),
    (
        "password",
        "zip",
        rf"{_EDGE}zip\s[^\n|;]{{0,200}}?(?<=\s)-P\s{{0,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    (
        "password",
        "unzip",
        rf"{_EDGE}unzip\s[^\n|;]{{0,200}}?(?<=\s)-P\s{{0,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    ("password", "7z", rf"{_EDGE}7z[arz]?\s[^\n|;]{{0,200}}?(?<=\s)-p[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})"),
    (
        "password",
        "ldap",
        rf"{_EDGE}ldap[a-z]{{1,10}}\s[^\n|;]{{0,200}}?(?<=\s)-w\s{{0,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    (
        "password",
        "mongo",
        rf"{_EDGE}mongo[a-z]{{0,10}}\s[^\n|;]{{0,200}}?(?<=\s)-p\s{{0,4}}[\"']?(?P<secret>(?!-){_VALUE}{{4,200}})",
    ),
    (
        "password",
        "-stdin",
        rf"{_EDGE}(?:echo|printf)\s(?:-n\s)?[\"']?(?P<secret>{_VALUE}{{4,200}})[\"']?\s?\|[^\n|;]{{0,200}}--password-stdin",
    ),
    (
        "password",
        "sudo",
        rf"{_EDGE}(?:echo|printf)\s(?:-n\s)?[\"']?(?P<secret>{_VALUE}{{4,200}})[\"']?\s?\|\s?sudo\s(?:-\w{{1,9}}\s){{0,3}}?-S\b",
    ),
    ("password", ":5432:", r"(?m)^[^\s:#]{1,100}:5432:[^\s:]{1,63}:[^\s:]{1,63}:(?P<secret>(?![$<{])[^\s:]{4,200})$"),
    ("password", ":*:", r"(?m)^[^\s:#]{1,100}:\*:[^\s:]{1,63}:[^\s:]{1,63}:(?P<secret>(?![$<{])[^\s:]{4,200})$"),
    ("query-key", "key=", r"(?i)[?&](?:api|access)[_-]?key=(?P<secret>(?=[\w%.~-]{0,100}[0-9])[\w%.~-]{10,300})"),
    ("password", "pwd=", r"(?i);\s{0,2}pwd=(?P<secret>[^;\s\"']{4,200})"),
    # the second half passes over what begins like one, so that its end is looked for once
    ("jwt", "eyJ", r"(?P<secret>eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,})|eyJ[\w-]{8,}"),
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
    (
        "private-key",
        "Private-Lines:",
        r"Private-Lines: [0-9]{1,4}\s{1,2}(?P<secret>(?:[A-Za-z0-9+/=]{1,80}\s{0,2}){1,400})",
    ),
    (
        "header",
        "cookie",
        rf"(?i){_EDGE}(?:set-)?cookie[\"']?\s{{0,4}}:\s{{0,4}}[\"']?(?P<secret>[^\s=;\"']{{1,100}}=[^\n\"']{{8,4000}})",
    ),
    ("header", "authorization", rf"(?i){_EDGE}authorization{_HEADER_VALUE}"),
    ("header", "-token", rf"(?i){_EDGE}(?:private|job|deploy|x-(?:vault|auth|gitlab|access|api))-token{_HEADER_VALUE}"),
    ("header", "api-key", rf"(?i){_EDGE}(?:x-|x-goog-)?api-key{_HEADER_VALUE}"),
    ("bearer", "earer", rf"{_EDGE}[Bb]earer\s{{1,4}}(?P<secret>(?=[^\s]*[0-9]){_VALUE}{{16,}})"),
    ("url-password", "://", r"://[^\s/:@]{0,256}:(?P<secret>(?![$<{\[])[^\s/\"'<>]{3,256})@"),
    ("url-token", "://", r"://(?P<secret>(?=[\w-]{0,100}[0-9])[\w-]{20,256})@"),
)


def _sooner(needle: str, shape: str) -> str:
    """The shape with its literal beginning first: then `re` looks for that before anything else."""
    literal = re.escape(needle)
    rest = shape.removeprefix(_EDGE + literal)
    return shape if rest == shape else rf"{literal}(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal})){rest}"


WORD_LENGTH = 15
"""The shortest text that a shape of one word matches."""
SPANS_WORDS = frozenset(
    {
        *("AKIA", "ASIA", "_auth", "_password", "npmauthident", '"auth', "PASSWORD=", "password", "bindpw", "curl"),
        *("sshpass", "mysql", "login", "pwd=", "eyJ", "PRIVATE KEY-----", "PRIVATE KEY BLOCK-----", "Private-Lines:"),
        *(
            "cookie",
            "authorization",
            "api-key",
            "earer",
            "://",
            "pass:",
            "redis-cli",
            "zip",
            "unzip",
            "7z",
            "ldap",
            "mongo",
        ),
        *("-stdin", "sudo", ":5432:", ":*:", "requirepass", "identified", "chpasswd", "smb", "-token", "key-data"),
    }
)
"""The literals of shapes that match blanks too, or short texts; all others stand in one long word."""

Needle: TypeAlias = tuple[str, bool, str, str]
"""What must be in a text, whether case does not matter, the label and the shape."""
NEEDLES: tuple[Needle, ...] = tuple(
    (needle, shape.startswith("(?i)"), label, _sooner(needle, shape)) for label, needle, shape in SHAPES
)
IN_WORDS = tuple(needle for needle in NEEDLES if needle[0] not in SPANS_WORDS)
IN_TEXT = tuple(needle for needle in NEEDLES if needle[0] in SPANS_WORDS)


def long_words(text: str) -> str:
    """The words of a text in which shapes of one word can stand, mostly a small part of it."""
    return "\n".join([word for word in text.split() if len(word) >= WORD_LENGTH])
