"""`./race completion`: prints scripts for completion in shells."""

import click

from racetrack.cli.parameters import Command, OneOf

# Each script calls the command as it was typed, so each clone of the repository completes its own
# engines.
SCRIPTS = {
    "bash": """\
_racetrack_complete() {
    local IFS=$'\\n' line
    COMPREPLY=()
    for line in $(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
        _RACE_COMPLETE=bash_complete "$1" 2>/dev/null); do
        case $line in
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
            plain,*) COMPREPLY+=("${line#plain,}") ;;
        esac
    done
}
complete -F _racetrack_complete race run_experiment.sh
""",
    "zsh": """\
#compdef race run_experiment.sh
_racetrack_complete() {
    local -a plain
    local type key text
    for type key text in "${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \\
        _RACE_COMPLETE=zsh_complete ${(Q)words[1]} 2>/dev/null)}"; do
        case $type in
            dir) _path_files -/ ;;
            file) _path_files ;;
            plain) plain+=("$key") ;;
        esac
    done
    (($#plain)) && compadd -a plain
}
compdef _racetrack_complete race run_experiment.sh
""",
    "fish": """\
function _racetrack_complete
    set -l words (commandline -opc)
    for line in (env COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -t) \\
            _RACE_COMPLETE=fish_complete $words[1] 2>/dev/null)
        set -l parts (string split -m 1 , $line)
        switch $parts[1]
            case dir
                __fish_complete_directories (commandline -t)
            case file
                __fish_complete_path (commandline -t)
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --command race --arguments "(_racetrack_complete)"
complete --no-files --command run_experiment.sh --arguments "(_racetrack_complete)"
""",
}


@click.command(cls=Command)
@click.argument("shell", metavar="SHELL", type=OneOf(SCRIPTS))
def completion(shell: str) -> None:
    """Print a script that makes a shell (bash, zsh or fish) complete commands, options and engines.

    \b
    Examples:
        eval "$(./race completion bash)"    in ~/.bashrc write the full path of race
        eval "$(./race completion zsh)"     after compinit
        ./race completion fish | source
    """
    click.echo(SCRIPTS[shell], nl=False)
