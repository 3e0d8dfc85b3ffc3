"""Command text with its values: what is filled, what is left alone, what is refused."""

from __future__ import annotations

import pytest

from treadle.base.place import Diagnostic, Place, Severity
from treadle.plan.tokens import bind, shown
from treadle.rules.schema import Spelled
from treadle.rules.text.command import (
    Filling,
    Known,
    ShellTemplate,
    TextTemplate,
    lookalikes,
    secret_variable,
)

PLACE = Place("flow.oxoflow", 7, "rules.align", "shell")
KNOWN = Known(
    wildcards=frozenset({"sample", "lane", "n"}),
    input_names=frozenset({"bam", "reads"}),
    output_names=frozenset({"vcf"}),
    config={
        "ref": "refs/genome.fa", "flags": ("-a", "-b c"), "p": Spelled("1e-5"), "fast": True, "n": 3,
        "text": "--x 'a b'", "bam": "aligned/{sample}.bam", "half": "'",
    },
    params={"rg": "@RG ID:{sample}", "plain": "-q", "loop": "{params.pool}", "pool": "{params.loop}", "k": 4},
    sensitive=frozenset({"token"}),
    has_log=True,
)  # fmt: skip
FILLING = Filling(
    inputs=("a.bam", "b c.bam", "-d.bam"),
    named_inputs={"bam": ("a.bam",), "reads": ("b c.bam", "-d.bam")},
    outputs=("out.vcf",),
    named_outputs={"vcf": ("out.vcf",)},
    log="logs/a.log",
    wildcards={"sample": "S1", "lane": "L 1", "n": "12"},
)


def problems_of(text: str, known: Known = KNOWN, filling: Filling = FILLING) -> list[Diagnostic]:
    problems: list[Diagnostic] = []
    ShellTemplate.parse(text, known, PLACE, problems).render(filling, problems)
    return problems


def codes(text: str, known: Known = KNOWN, filling: Filling = FILLING) -> list[str]:
    return [problem.code for problem in problems_of(text, known, filling)]


def shell(text: str, filling: Filling = FILLING) -> str:
    """The rendered text, without any problem; tokens as `<name>`."""
    problems: list[Diagnostic] = []
    rendered = ShellTemplate.parse(text, KNOWN, PLACE, problems).render(filling, problems)
    assert problems == []
    return rendered.replace("\0", "%")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat {input}", "cat a.bam 'b c.bam' ./-d.bam"),
        ("cat {input[0]} {input[1]} {input[2]}", "cat a.bam 'b c.bam' ./-d.bam"),
        ("cat {input.bam} {input.reads}", "cat a.bam 'b c.bam' ./-d.bam"),
        ("cat {input.reads[1]}", "cat ./-d.bam"),
        ("cat {input:each=-I }", "cat -I a.bam -I 'b c.bam' -I ./-d.bam"),
        ("cat {input.reads:each=--in=}", "cat --in='b c.bam' --in=-d.bam"),
        ("cat {input:sep=,}", "cat a.bam,'b c.bam',-d.bam"),
        ("cat '{input:sep=|}'", "cat 'a.bam|b c.bam|-d.bam'"),
        ("call {output} {output.vcf} {output[0]} 2> {log}", "call out.vcf out.vcf out.vcf 2> logs/a.log"),
        ("run {sample} {lane} {values.lane}", "run S1 'L 1' 'L 1'"),
        ("run {config.ref} {config.flags} {config.p} {config.fast} {config.n}",
         "run refs/genome.fa -a -b c 1e-5 true 3"),
        ("run {config.text} {params.plain} {params.k}", "run --x 'a b' -q 4"),
        ("run {config.flags:sep=,} {config.flags:each=-f }", "run -a,-b c -f -a -f -b c"),
    ],
)  # fmt: skip
def test_placeholders_are_filled(text: str, expected: str) -> None:
    assert shell(text) == expected


def test_what_only_an_attempt_knows_is_a_token() -> None:
    text = shell("x -t {threads} -m {memory} {effective_threads} '{effective_memory_mb}' @{input.list}")
    assert text == "x -t %threads% -m %memory% %effective_threads% '%effective_memory_mb%' @%input_list%"
    assert shown(text.replace("%", "\0")).startswith("x -t {threads} -m {memory}")


@pytest.mark.parametrize(
    "text",
    [
        "awk '{print $1}' x",
        "awk -F '\\t' '{s+=$1} END {print s}' x",
        "echo ${threads} \"${sample}\" '${sample}'",
        "echo {1..3} {a,b}.txt {} {/}",
        "echo ${x:-{y}} ${x:-}",
        "jq '{name: .name, id}' x",
        "docker ps --format '{{.State}}' --filter \"{{.Names}}\"",
        "python -c 'print(f\"{value} {row[0]} {x:>10} {y!r}\")'",
        "echo {{word}} '{{word}}'",
        "exec {fd}>x; echo a >&$fd; exec {fd}>&-",
        "find . -exec ls {} \\;",
        "f() { echo a; }; f",
        "\\{word}",
        "cat <<'EOF'\n{word} {other}\nEOF",
        "echo a # {word} isn't known",
    ],
)
def test_text_of_the_shell_is_not_damaged(text: str) -> None:
    assert shell(text) == text
    assert shell(f"{text}\necho {{lane}}") == f"{text}\necho 'L 1'"


def test_double_braces_around_a_known_name_are_a_literal() -> None:
    assert shell("echo '{{sample}}' {{input[0]}} {{config.ref}} {{nothing}}") == (
        "echo '{sample}' {input[0]} {config.ref} {{nothing}}"
    )
    assert shell("echo \\\\section{{{sample}}} ${{sample}}") == "echo \\\\section{S1} ${sample}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{lane}", "'L 1'"),
        ('"{lane}"', '"L 1"'),
        ("'{lane}'", "'L 1'"),
        ("x={lane}", "x='L 1'"),
        ("a{sample}b", "aS1b"),
        ('"$(ls {lane})"', "\"$(ls 'L 1')\""),
        ("`ls {lane}`", "`ls 'L 1'`"),
        ("echo $(( {n} * 2 ))", "echo $(( 12 * 2 ))"),
        ("echo {n}>x; echo {threads}>x; echo 2{n}>x", "echo '12'>x; echo \"%threads%\">x; echo 212>x"),
        ("echo $x{sample} \"$x{sample}\" $x{threads}", "echo $x'S1' \"$x\"\"S1\" $x\"%threads%\""),
        ("cp {{sample}.a,{sample}.b} .", "cp {S1.a,S1.b} ."),
        ("# {lane}", "# L 1"),
        ("cat <<EOF\n{sample}\nEOF\n", "cat <<EOF\nS1\nEOF\n"),
        ("cat <<< {lane}", "cat <<< 'L 1'"),
        ("[[ {lane} == x ]]", "[[ 'L 1' == x ]]"),
        ("case x in {lane}) ;; esac; '{lane}'", "case x in 'L 1') ;; esac; 'L 1'"),
    ],
)  # fmt: skip
def test_a_value_is_quoted_for_its_place(text: str, expected: str) -> None:
    assert shell(text) == expected


def test_reserved_words_and_assignments_are_quoted_where_they_would_count() -> None:
    filling = Filling(wildcards={"sample": "if", "lane": "a=b"})
    assert shell("{sample} {sample}; {lane} {lane}", filling) == "'if' if; 'a=b' a=b"
    assert shell("2>x {lane} >{lane} 2>&1 | {sample}", filling) == "2>x 'a=b' >a=b 2>&1 | 'if'"


def test_a_comma_is_quoted_only_inside_of_braces() -> None:
    filling = Filling(wildcards={"lane": "a,b"})
    assert shell("{lane} x{y,{lane}}", filling) == "a,b x{y,'a,b'}"


def test_the_authors_text_is_put_in_as_it_is_and_its_quotes_count() -> None:
    known = Known(
        wildcards=frozenset({"s"}), config={"open": "x '", "close": "' y"}, params={"d": 'a "{s}" b'}
    )
    problems: list[Diagnostic] = []
    template = ShellTemplate.parse("e {config.open}{s}{config.close} {s} {params.d}", known, PLACE, problems)
    assert (
        template.render(Filling(wildcards={"s": "it's"}), problems)
        == "e x 'it'\\''s' y 'it'\\''s' a \"it's\" b"
    )
    assert problems == []


def test_wildcards_inside_of_params_and_config_are_quoted_for_the_place_of_the_param() -> None:
    filling = Filling(wildcards={"sample": "a b"})
    assert shell("x '{params.rg}' \"{params.rg}\" {config.bam}", filling) == (
        "x '@RG ID:a b' \"@RG ID:a b\" aligned/'a b'.bam"
    )


def test_the_template_tells_what_it_names() -> None:
    problems: list[Diagnostic] = []
    text = 'x {params.rg} {lane} {log} {input.list} {config.token} "{config.token}"'
    template = ShellTemplate.parse(text, KNOWN, PLACE, problems)
    assert problems == []
    assert template.names == {"sample", "lane"}
    assert template.secrets == ("TREADLE_SECRET_TOKEN",)
    assert template.uses_log
    assert template.uses_input_list
    plain = ShellTemplate.parse("x {input}", KNOWN, PLACE, problems)
    assert (plain.names, plain.secrets, plain.uses_log, plain.uses_input_list) == (
        frozenset(),
        (),
        False,
        False,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("curl {config.token}", 'curl "${TREADLE_SECRET_TOKEN}"'),
        ('curl -H "Key: {config.token}"', 'curl -H "Key: ${TREADLE_SECRET_TOKEN}"'),
        ('curl "$(echo {config.token})"', 'curl "$(echo "${TREADLE_SECRET_TOKEN}")"'),
        ("cat <<EOF\n{config.token}\nEOF", "cat <<EOF\n${TREADLE_SECRET_TOKEN}\nEOF"),
    ],
)
def test_a_sensitive_value_becomes_a_variable(text: str, expected: str) -> None:
    assert shell(text) == expected


@pytest.mark.parametrize(
    "text", ["x '{config.token}'", "x $'{config.token}'", "cat <<'E'\n{config.token}\nE"]
)
def test_a_sensitive_value_is_refused_where_variables_are_not_expanded(text: str) -> None:
    (problem,) = problems_of(text)
    assert problem.code == "secret-in-quotes"
    assert problem.place == PLACE
    assert problem.hint


def test_two_secrets_cannot_share_a_variable() -> None:
    known = Known(sensitive=frozenset({"a_b", "A-b"}))
    assert secret_variable("a_b") == secret_variable("A-b") == "TREADLE_SECRET_A_B"
    assert codes("x {config.a_b}", known) == ["secret-name-clash"]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("x {sampel}", "unknown-placeholder", "did you mean 'sample'?"),
        ("x {word}", "unknown-placeholder", "quote it: '{word}'"),
        ("x {wildcards.sample}", "unknown-placeholder", "write {sample}"),
        ("x {resources.mem}", "unknown-placeholder", "quote it"),
        ("x {config}", "unknown-placeholder", ""),
        ("x {config.rev}", "unknown-config", "did you mean 'ref'?"),
        ("x '{config.nothing}'", "unknown-config", "{{config.nothing}}"),
        ("x {params.rgs}", "unknown-param", "did you mean 'rg'?"),
        ("x {values.lanes}", "unknown-placeholder", "did you mean 'lane'?"),
        ("x {input.bm}", "unknown-input", "did you mean 'bam'?"),
        ("x {output.vfc}", "unknown-output", "did you mean 'vcf'?"),
        ("x {input[3]}", "index-out-of-range", "there are 3 inputs"),
        ("x {output[1]}", "index-out-of-range", "there is 1 output,"),
        ("x {input.reads[2]}", "index-out-of-range", "there are 2 inputs"),
        ("x {input[-1]}", "bad-placeholder", "{input[0]}"),
        ("x {sample[0]}", "bad-placeholder", "write {sample}"),
        ("x {sample:sep=,}", "bad-placeholder", "write {sample}"),
        ("x {threads:03d}", "bad-placeholder", "write {threads}"),
        ("x {input.list:sep=,}", "bad-placeholder", "one file"),
        ("x {input:sep=;}", "bad-placeholder", "plain text"),
        ("x '{input:sep='}'", "bad-placeholder", "plain text"),
        ("x {step.model}", "unknown-step", "[[steps]]"),
        ("x {params.loop}", "params-cycle", "params.loop -> params.pool -> params.loop"),
        ("x \\{sample}", "cannot-quote", "{{name}}"),
        ('x "\\{sample}"', "cannot-quote", "{{name}}"),
        ("x $(( {lane} ))", "cannot-quote", "not a whole number"),
        ("x ${y:-{lane}}", "cannot-quote", "in ${...}"),
        ("x `echo \\`ls {lane}\\``", "cannot-quote", "other quotes"),
        ('x "`ls {lane}`"', "cannot-quote", "other quotes"),
        ("x[{lane}]=1", "cannot-quote", "array index"),
        ("x=([{lane}]=1)", "cannot-quote", "array index"),
        ("x[a #']={lane}", "shell-syntax", "array index"),
        ("x >& {lane}", "cannot-quote", "2>&1"),
        ("x >& \"$(dirname '{lane}')\"", "cannot-quote", "2>&1"),
        ("x <<EOF\n{lane}\nEOF", "cannot-quote", "${name}"),
        ("x <<'EOF'\n{lane}\nEOF", "cannot-quote", "export"),
        ("x {sample} 'y", "shell-syntax", "'...' is not closed"),
        ('x "{sample} y', "shell-syntax", '"..." is not closed'),
        ("x $(y {sample}", "shell-syntax", "a command is not closed"),
        ("x {config.half} {sample}", "shell-syntax", "'...' is not closed"),
        ("x {sample}\0", "nul-character", "NUL"),
    ],
)  # fmt: skip
def test_what_cannot_be_filled_is_told_with_its_place_and_a_way_out(text: str, code: str, says: str) -> None:
    (problem,) = problems_of(text)
    assert problem.code == code
    assert problem.place == PLACE
    assert problem.severity is Severity.ERROR
    assert says in f"{problem.message} {problem.hint}"


def test_a_name_where_the_inputs_have_none_is_told_with_the_way_to_name_them() -> None:
    (problem,) = problems_of("x {input.bam}", Known())
    assert problem.code == "unknown-input"
    assert "{input[0]}" in problem.hint
    assert 'input = { bam = "..." }' in problem.hint


def test_the_log_of_a_rule_without_one_is_an_error() -> None:
    assert codes("x > {log}", Known()) == ["no-log"]


def test_an_index_is_checked_at_load_where_the_number_is_fixed() -> None:
    problems: list[Diagnostic] = []
    ShellTemplate.parse("x {input[2]} {output[0]}", Known(input_count=2, output_count=1), PLACE, problems)
    assert [problem.code for problem in problems] == ["index-out-of-range"]


def test_a_value_that_is_missing_for_a_task_is_an_error_and_no_empty_text() -> None:
    assert codes("x {sample} {input.bam} {log}", filling=Filling()) == ["no-value"] * 3


@pytest.mark.parametrize("value", ["a\nb", "a\tb", "a\0b", "a\x7fb", "a\udcffb", "a\x85b"])
def test_control_characters_are_a_problem_and_no_traceback(value: str) -> None:
    for text in ("x {sample}", 'x "{sample}"', "x '{sample}'", "x # {sample}"):
        assert codes(text, filling=Filling(wildcards={"sample": value})) == ["control-character"]


def test_all_problems_of_a_text_are_told_together() -> None:
    assert codes("x {sampel} {config.rev} {input.bm} {step.y} {laen}") == [
        "unknown-config", "unknown-input", "unknown-step", "unknown-placeholder", "unknown-placeholder",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["x '{sampel}'", 'x "{inputs}"', "x '{confg.ref}'", "x # {thread}", "x <<E\n{oupput}\nE",
     "'{wildcards.sample}'"],
)  # fmt: skip
def test_an_unknown_word_in_quotes_that_is_nearly_known_is_a_warning(text: str) -> None:
    (problem,) = problems_of(text)
    assert problem.code == "looks-like-placeholder"
    assert problem.severity is Severity.WARNING
    assert problem.hint
    assert lookalikes(text, KNOWN, PLACE) == (problem,)


@pytest.mark.parametrize("text", ["x '{print}'", "x '{i}'", 'x "{name}"', "x '{sampel[0]}'", "x {{sampel}}"])
def test_other_words_in_quotes_are_left_alone_without_a_warning(text: str) -> None:
    assert problems_of(text) == []


def test_several_paths_in_quotes_are_a_warning_that_is_given_once() -> None:
    problems: list[Diagnostic] = []
    template = ShellTemplate.parse("x \"{input}\" {input} '{output}'", KNOWN, PLACE, problems)
    for _ in range(3):
        assert (
            template.render(FILLING, problems)
            == "x \"a.bam b c.bam -d.bam\" a.bam 'b c.bam' ./-d.bam 'out.vcf'"
        )
    assert [(problem.code, problem.severity) for problem in problems] == [
        ("list-in-quotes", Severity.WARNING)
    ]


@pytest.mark.parametrize("text", ['x "{input:sep= }"', 'x "{input[0]}"', 'x "{output}"', "x {input}"])
def test_lists_that_are_meant_are_no_warning(text: str) -> None:
    assert problems_of(text) == []


def test_several_paths_joined_to_a_word_are_a_warning() -> None:
    (problem,) = problems_of("x --in={input}")
    assert (problem.code, problem.severity) == ("list-in-word", Severity.WARNING)
    assert "{input:each=" in problem.hint


def test_a_value_cannot_end_a_here_document() -> None:
    text = "cat <<EOF\n{sample}\n{lane}{sample}\nx{sample}\nEOF\n"
    assert codes(text, filling=Filling(wildcards={"sample": "EOF", "lane": "a"})) == ["cannot-quote"] * 2
    assert codes(text, filling=Filling(wildcards={"sample": "S1", "lane": "a"})) == []


def test_a_value_that_bash_would_evaluate_in_a_test_is_refused() -> None:
    assert codes("[[ 1 -eq {sample} ]]", filling=Filling(wildcards={"sample": "a[$(id)]"})) == [
        "cannot-quote"
    ]


def test_plain_text_takes_values_as_they_are() -> None:
    problems: list[Diagnostic] = []
    text = "{sample} '{lane}' {input:sep=,} {config.flags} {{sample}} ${x} {threads}"
    template = TextTemplate.parse(text, KNOWN, PLACE, problems)
    rendered = template.render(FILLING, problems)
    assert bind(rendered, {"threads": "8"}) == "S1 'L 1' a.bam,b c.bam,-d.bam -a -b c {sample} ${x} 8"
    assert problems == []
    assert template.names == {"sample", "lane"}


def test_a_secret_in_plain_text_is_a_token() -> None:
    problems: list[Diagnostic] = []
    template = TextTemplate.parse("Bearer {config.token}", KNOWN, PLACE, problems)
    assert template.secrets == ("TREADLE_SECRET_TOKEN",)
    text = template.render(FILLING, problems)
    assert "TREADLE_SECRET_TOKEN" in shown(text)
    assert bind(text, {"TREADLE_SECRET_TOKEN": "s3cret"}) == "Bearer s3cret"


def test_an_unknown_word_in_plain_text_is_an_error_unless_its_place_is_not_known_yet() -> None:
    problems: list[Diagnostic] = []
    TextTemplate.parse("{word} '{word}'", KNOWN, PLACE, problems)
    assert [problem.code for problem in problems] == ["unknown-placeholder"] * 2
    problems.clear()
    TextTemplate.parse("{word}", KNOWN, PLACE, problems, lenient=True)
    assert problems == []
