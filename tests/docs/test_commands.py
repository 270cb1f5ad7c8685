"""Every `coatcheck` command line on any page is one that the program understands."""

from .commands import commands, named_by, option_names_of, shown_commands


def test_shown_commands_and_options_exist() -> None:
    known = {name.removeprefix("coatcheck "): option_names_of(command) for name, command in commands()}
    faults = []
    for one, words in shown_commands():
        options = {word.split("=")[0] for word in words if word.startswith("-")}
        name = named_by(words, known)
        unknown = options - (known[name] if name else {"--help"})
        if unknown or (name is None and list(words) != ["--help"]):
            faults.append(f"{one.name}: coatcheck {' '.join(words)} {sorted(unknown)}")
    assert not faults, "\n" + "\n".join(faults)


def test_pages_show_the_main_command() -> None:
    assert any(words[0] == "serve" for _, words in shown_commands())
