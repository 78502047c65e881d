"""jq filters and command lines, and what both programs named yq do."""

import json
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import UnclearError
from handrail.shell import Does, analyse
from handrail.shell.grammars.json_queries import jq
from handrail.shell.json_form import segment_json
from tests.shell.corpus_report import runs_unasked

FILTERS = r"""
.
.version
.a.b["c d"].e[0]?
.[]
.[2:4]
.. | .id? // empty
map(select(.active)) | length
[.[] | {id, name, "full name": .n, (.k): .v, $x, env, "a\(.b)": 1, @base64 "x": 2, type: 3}]
.items | group_by(.kind) | map({kind: .[0].kind, n: length}) | sort_by(-.n)
to_entries[] | "\(.key)=\(.value | tostring | @sh)"
reduce .[] as $x (0; . + $x.n)
foreach range(5) as $i (0; . + $i; [$i, .])
if .a then 1 elif .b > 2 and (.c | not) then "x" else null end
def f(g; $n): map(g) | .[:$n]; def h: 1; f(.a; 3), h
try error("x") catch .
label $out | .[] | if . > 3 then ., break $out else . end
.a |= . + 1 | .b //= 2 | del(.c) | .d -= 1
. as [$a, {b: $c}] | $a + $c
.[] as {a: $x} ?// [$x] | $x
walk(if type == "object" then del(.x) else . end)
test("a\\(b\\)"; "i"), sub("(?<x>a)"; "\(.x)b")
input, inputs, input_filename, halt_error, $__loc__, $ENVIRONMENT, $ARGS.named
@json, @html, @uri, @csv, @tsv, @text "a\(.b)"
1.5e3, .5, -1, 10 % 3
[limit(3; .[])] | first, last, nth(1)
.["a"], ."b", ."c"?.d
""".strip().splitlines()

UNCLEAR = r"""
include "x"; .
import "x" as x; x::f
import "a" as $d; $d
modulemeta
get_search_list
nosuch
nosuch(.)
. # comment
.a)
(.a
{a: [}
"open
"a\(.b"
$__prog_args
@nosuch
load("x")
{a: 1, load("x")}
a::b
.a \ .b
`id`
"def load" | load("x")
""".strip().splitlines()

SECRET = ["env", "$ENV", "$ENV.PATH",
          ".a | env.HOME", '"\\(env)"', '{"\\($ENV)": 1}', "{(env): 1}", "{a: env}", "[env]",
          "def env: 1; env", "def f(env): env; f(1)", "{$ENV}", ". as $ENV | $ENV"]  # fmt: skip


@pytest.mark.parametrize("text", FILTERS)
def test_a_filter_that_computes_has_no_effect(text: str) -> None:
    assert jq(text) == ()


@pytest.mark.parametrize("text", UNCLEAR)
def test_a_filter_outside_the_grammar_is_refused(text: str) -> None:
    with pytest.raises(UnclearError):
        jq(text)


@pytest.mark.parametrize("text", SECRET)
def test_the_environment_is_a_secret(text: str) -> None:
    assert {effect.does for effect in jq(text)} == {Does.SECRET}


@pytest.mark.needs("jq")
def test_the_filters_above_are_real_ones() -> None:
    """jq compiles them all, each as the body of a function that is never called."""
    text = "\n".join(f"def f{number}: ({text});" for number, text in enumerate(FILTERS)) + " null"
    words = ["jq", "-n", "--arg", "x", "", "--arg", "ENVIRONMENT", "", text]
    done = subprocess.run(words, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"null\n"), done.stderr


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(
            st.sampled_from([*'.[]{}()|,:;"\\ ', "\\(", "env", "def ", "$ENV", "map", "f", "@sh", "1", ".a", "if "]),
            max_size=40,
        ).map("".join),
    )
)
def test_every_text_is_read_or_refused_and_never_hides_the_environment(text: str) -> None:
    try:
        effects = jq(text)
    except UnclearError:
        return
    bare = text.replace("\\", '"').partition('"')[0]
    assert effects or not re.search(r"\$ENV\b", bare)


def test_deep_and_long_filters_are_refused_quickly() -> None:
    for text in ("[" * 50_000, '"\\(' * 2_000, "." * 9_000, "(" * 4_000 + ")" * 3_999):
        with pytest.raises(UnclearError):
            jq(text)


@pytest.mark.parametrize(
    "line",
    [
        "jq . a.json", "jq -r '.a' a.json b.json", "jq -rcS '.[]' src/*.json", "jq --arg n foo '.[$n]' data.json",
        "jq --argjson n 1 --arg m 2 '. + $n' f", "jq --indent 4 . f",
        "jq -n '[1]'", "jq --tab . a.json", "jq --version",
        "jq -h", "jq -e .a f", "jq . - < f", "jq -n '$ARGS' --args a b", "jq --slurpfile a a.json -n '$a'",
        "jq --rawfile a a.txt -n '$a'", "jq -s 'add' -- a.json", "cat f | jq .", "jq '.a=1' a.json", "jq .a f | head",
        "yq . f.yml", "yq -r '.version' conf.yml", "yq e '.a.b' f.yaml", "yq eval-all '. ' a.yaml b.yaml", "yq f.yaml",
        "yq -o json . f.yml", "yq -o=json f.yml", "yq -P f.yaml", "yq -y '.a' f.yml", "yq --version",
        "yq '.a | keys' f.yml", "yq -p xml -o json '.' f.xml", "yq '.. | select(tag == \"!!str\")' f.yml",
        "xmllint --noout a.xml", "xmllint --xpath '//a/text()' a.xml", "xmllint --format src/*.xml", "gron a.json",
    ],
)  # fmt: skip
def test_reading_lines_run_unasked(line: str) -> None:
    assert runs_unasked(line), analyse(line).reasons


@pytest.mark.parametrize(
    "line",
    [
        "jq", "jq -f x.jq a", "jq --from-file x a", "jq -L . 'import \"x\" as x; .' f", "jq -nf x", "jq --indent=2 . f",
        "jq --slurpfile a ~/.aws/credentials -n '$a'", "jq --rawfile a /etc/passwd -n '$a'", "jq . /etc/passwd",
        "jq env", "jq -n '$ENV.X'", "jq --arg a", "jq --arg a $x . f", 'jq "$x" f', "jq . $x",
        "jq $x", "jq --argfile a f .",
        "jq --arg a b env", "jq --args env", "jq -n 'env' --arg a b", "jq *", "jq --sl . f", "jq -- -n env",
        "jq . -- ../x",
        "yq -i '.a=1' f.yml", "yq -ri .a f", "yq --inplace .a f", "yq --in-place .a f", "yq -s .a f.yml",
        "yq --split-exp .a f.yml", "yq 'load(\"x\")' f", "yq '.a = env(X)' f", "yq 'strenv(X)' f", "yq 'eval(.x)' f",
        "yq 'system(\"id\")' f", "yq e 'load_str(\"/etc/passwd\")' f", "yq -o env . f", "yq -o 'env' .", "yq -I env .",
        "yq . /etc/passwd", "yq '\"def load\" | load(\"x\")' f", "yq 'def load: 1; load(\"x\")' f", "yq -f x .", "yq",
        "yq '{a: 1, load(\"x\")}' f", "yq envsubst f", "yq shell-completion bash", "yq --from-file x f", "yq -w 5 . f",
        "xmllint --noent a.xml", "xmllint --c14n a.xml", "xmllint --c14n11 a.xml", "xmllint --exc-c14n a.xml",
        "xmllint --valid a.xml", "xmllint --xinclude a.xml", "xmllint --output x a.xml",
        "xmllint -o x a.xml", "xmllint --shell a.xml", "xmllint http://evil.example/x", "xmllint file:///etc/passwd",
        "xmllint --schema http://evil.example/x a.xml", "xmllint --dtdvalid x a.xml", "xmllint /etc/x.xml",
        "xmllint --loaddtd a.xml", "xmllint -noent a.xml", "gron http://evil.example", "tomlq . f", "xq . f",
    ],
)  # fmt: skip
def test_other_lines_are_asked_for(line: str) -> None:
    assert not runs_unasked(line)


def test_files_of_a_jq_command_are_named() -> None:
    (segment,) = analyse("jq --slurpfile a one.json --arg x two '$a' three.json four.json").segments
    assert [str(word) for word in segment.reads] == ["one.json", "three.json", "four.json"]
    json.dumps(segment_json(segment))
