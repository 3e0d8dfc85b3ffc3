"""`[[references]]` as rules of the plan: what recipes run and make, their config keys, who waits for them."""

from __future__ import annotations

import pytest
from rules_world import expanded, tasks

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.rules.file.read import ReadOptions, read_text

HEAD = '[workflow]\nname = "w"\nstrict_shell = true\n'
USE = '[[rules]]\nname = "use"\noutput = ["out.txt"]\nshell = "use {config.ix} > {output}"\n'


def reference(build: str, source: str = "ref/g.fa", output: str = "ref/x", more: str = "") -> str:
    written = f'source = "{source}"\n' if source else ""
    return f"[[references]]\nname = \"ix\"\n{written}output = \"{output}\"\nbuild = '''{build}'''\n{more}\n"


def errors(text: str) -> list[Diagnostic]:
    with pytest.raises(WorkflowError) as caught:
        expanded(text, ["ref/g.fa"])
    return list(caught.value.diagnostics)


@pytest.mark.parametrize(
    ("build", "source", "output", "command", "made"),
    [
        ("samtools_faidx", "r/g.fa", "r/g.fa.fai", "samtools faidx r/g.fa", ["r/g.fa.fai"]),
        ("samtools_faidx", "r/g.fa", "i/g.fai", "samtools faidx --fai-idx i/g.fai r/g.fa", ["i/g.fai"]),
        (
            "samtools_faidx",
            "g.fa.gz",
            "g.fa.gz.fai",
            "samtools faidx g.fa.gz",
            ["g.fa.gz.fai", "g.fa.gz.gzi"],
        ),
        (
            "samtools_faidx",
            "g.fa.gz",
            "i/g.fai",
            "samtools faidx --fai-idx i/g.fai --gzi-idx i/g.gzi g.fa.gz",
            ["i/g.fai", "i/g.gzi"],
        ),
        (
            "picard_dict",
            "g.fa",
            "g.dict",
            "rm -f g.dict && picard CreateSequenceDictionary -R g.fa -O g.dict",
            ["g.dict"],
        ),
        (
            "bwa_index",
            "g.fa",
            "bwa/g.fa.bwt",
            'first=bwa/g.fa.bwt && bwa index -p "${first%.*}" g.fa',
            [f"bwa/g.fa.{one}" for one in ("bwt", "amb", "ann", "pac", "sa")],
        ),
        (
            "bwa_index",
            "g.fa",
            "bwa/g.fa",
            'first=bwa/g.fa.amb && bwa index -p "${first%.*}" g.fa',
            [f"bwa/g.fa.{one}" for one in ("amb", "ann", "bwt", "pac", "sa")],
        ),
        ("mkdir -p x && cp {input} {output}", "g.fa", "x/y", "mkdir -p x && cp g.fa x/y", ["x/y"]),
        (
            'awk "{next} 1" {source} ${source} > {output}',
            "g.fa",
            "x",
            'awk "{next} 1" g.fa ${source} > x',
            ["x"],
        ),
    ],
)
def test_a_recipe_says_what_runs_and_all_that_it_makes(
    build: str, source: str, output: str, command: str, made: list[str]
) -> None:
    task = tasks(reference(build, source, output))["reference::ix"]
    assert task.command.text == command
    assert list(task.outputs) == made
    assert task.inputs == (source,)


def test_star_makes_a_folder_and_keeps_its_log_and_the_memory_that_was_asked_for() -> None:
    task = tasks(reference("star_index", output="star"))["reference::ix"]
    assert task.outputs == ("star",)
    assert "--genomeDir star --genomeFastaFiles ref/g.fa --outFileNamePrefix star/" in task.command.text
    assert "--limitGenomeGenerateRAM" not in task.command.text
    more = tasks(reference("star_index", output="star", more='threads = 8\nmemory = "40G"'))["reference::ix"]
    assert "--limitGenomeGenerateRAM $((\0effective_memory_mb\0 * 1048576))" in more.command.text
    assert (more.resources.threads, more.resources.memory) == (8, 40 * 1024**3)


def test_bismark_works_in_the_folder_that_it_reads() -> None:
    task = tasks(reference("bismark_index", "ref", "ref/Bisulfite_Genome"))["reference::ix"]
    assert task.command.text.endswith('bismark_genome_preparation "$@" ref')
    assert [one.code for one in errors(reference("bismark_index", "ref", "other"))] == ["bad-value"]


def test_config_values_may_stand_in_the_paths_of_a_recipe() -> None:
    text = '[config]\nfa = "g.fa.gz"\n' + reference("samtools_faidx", "{config.fa}", "{config.fa}.fai")
    assert tasks(text)["reference::ix"].outputs == ("g.fa.gz.fai", "g.fa.gz.gzi")


def test_the_name_is_a_config_key_with_the_output_as_its_value() -> None:
    made = tasks('[config]\ndir = "d"\n' + reference("cp {input} {output}", output="{config.dir}/x") + USE)
    assert made["use"].command.text == "use d/x > out.txt"


def test_a_rule_that_only_names_the_key_waits_for_the_reference() -> None:
    made = tasks(reference("bwa_index", output="bwa/g") + USE)
    assert made["use"].depends_on == ("reference::ix",)
    script = USE.replace("use {config.ix} > {output}", "use {params.ix}")
    script += '[rules.params]\nix = "{config.ix}"\n'
    assert tasks(reference("bwa_index", output="bwa/g") + script)["use"].depends_on == ("reference::ix",)


def test_a_rule_that_reads_the_file_needs_it_by_its_path() -> None:
    made = tasks(
        reference("cp {input} {output}") + USE.replace("output =", 'input = ["{config.ix}"]\noutput =')
    )
    assert made["use"].inputs == ("ref/x",)
    assert made["use"].depends_on == ()


def test_a_key_that_the_user_set_is_the_users() -> None:
    made = tasks('[config]\nix = "mine"\n' + reference("cp {input} {output}") + USE)
    assert made["use"].command.text == "use mine > out.txt"
    assert made["use"].depends_on == ()
    given = tasks(reference("cp {input} {output}") + USE, config=[("ix", "theirs")])
    assert given["use"].command.text == "use theirs > out.txt"


def test_a_reference_may_be_built_of_another_one_and_of_nothing() -> None:
    first = reference("fetch > {output}", source="", output="g.fa").replace('"ix"', '"genome"')
    second = reference("cp {input} {output}", source="{config.genome}")
    made = tasks(first + second)
    assert made["reference::genome"].inputs == ()
    assert made["reference::ix"].inputs == ("g.fa",)


def test_defaults_prelude_and_overrides_hold_for_references() -> None:
    text = "[defaults]\nthreads = 3\nshell_prelude = 'module load x'\n" + reference("cp {input} {output}")
    options = ReadOptions(settings=(("reference::ix", "threads", "5"),))
    (rule,) = read_text(HEAD + text, options=options).rules
    assert rule.resources.threads == 5
    assert rule.policy.shell.prelude == "module load x"
    assert read_text(HEAD + text).rules[0].resources.threads == 3


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        (reference("samtools_fiadx"), "bad-value", "build"),
        (reference("samtools_faidx", source=""), "missing-key", ""),
        (reference("x").replace('output = "ref/x"\n', ""), "missing-key", ""),
        (reference("cp {input} {output}").replace('"ix"', '"1x"'), "bad-name", "name"),
        (reference("cp {inputs} {output}"), "unknown-placeholder", "build"),
        (reference("cp {input} {output}", more="thread = 1"), "unknown-key", "thread"),
        (reference("cp {input} {output}") * 2, "duplicate-rule", "name"),
    ],
)
def test_what_is_wrong_with_a_reference_is_told_at_its_keys(text: str, code: str, key: str) -> None:
    found = [(one.code, one.place.key) for one in errors(text)]
    assert (code, key) in found, found


def test_the_nearest_recipe_is_named() -> None:
    assert errors(reference("samtools_fiadx"))[0].hint == "did you mean 'samtools_faidx'?"


def test_a_reference_dir_brings_the_usual_paths_below_it() -> None:
    config = read_text(HEAD + '[config]\nreference_dir = "/data/g"\nstar_index = "own"\n' + USE).config
    assert config["reference_fasta"] == "/data/g/genome.fa"
    assert config["gene_annotation"] == "/data/g/genes.gtf"
    assert config["bwa_index"] == "/data/g/bwa/genome.fa"
    assert config["minimap2_index"] == "/data/g/genome.fa.mmi"
    assert config["star_index"] == "own"
    assert "reference_fasta" not in read_text(HEAD + USE).config


def test_references_and_the_parts_of_a_transform_run_in_the_environment_of_the_defaults_or_their_own() -> (
    None
):
    own = reference("cp {input} {output}", more='environment = { modules = ["bwa"] }')
    parted = """
        [[rules]]
        name = "parted"
        output = ["p.txt"]
        [rules.transform]
        map = "echo {a} > {output}"
        split = { by = "a", values = [1] }
        combine = { aggregate = true }
    """
    text = '[defaults]\nenvironment = { modules = ["gcc"] }\n' + own + parted
    found = {rule.name: rule.policy.environment for rule in read_text(HEAD + text).rules}
    assert None not in found.values()
    assert found["reference::ix"] != found["parted"] == found["parted.map"]
