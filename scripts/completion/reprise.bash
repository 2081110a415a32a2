# shellcheck shell=bash
# Completion of reprise for bash. Needs no other package.

_reprise_words() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(compgen -W "$1" -- "$2")
}

_reprise_files() {
    local word
    COMPREPLY=()
    compopt -o filenames 2>/dev/null
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(compgen -f -- "$1")
}

# The command behind `--` is completed as a command of its own.
_reprise_command() {
    local first=$1 current=${COMP_WORDS[COMP_CWORD]} word
    if [ "$COMP_CWORD" -eq "$first" ]; then
        COMPREPLY=()
        while IFS= read -r word; do
            COMPREPLY+=("$word")
        done < <(compgen -c -- "$current")
        return
    fi
    if declare -F _command_offset >/dev/null; then
        _command_offset "$first"
    else
        _reprise_files "$current"
    fi
}

_reprise() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} i
    if [ "$COMP_CWORD" -eq 1 ]; then
        _reprise_words "run record report plan curve doctor help" "$current"
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then
            _reprise_command $((i + 1))
            return
        fi
    done
    case $previous in
    --cap)
        _reprise_words "1GiB 2GiB 4GiB 7GiB 8GiB 16GiB 24GiB 32GiB 40GiB 80GiB" "$current"
        return
        ;;
    --device)
        _reprise_words "auto gpu cpu" "$current"
        return
        ;;
    --verify)
        _reprise_words "always sample" "$current"
        return
        ;;
    --log)
        _reprise_words "quiet error warning info debug" "$current"
        return
        ;;
    -o | --trace | --stats | --html | --sqlite | --perfetto | --svg)
        _reprise_files "$current"
        return
        ;;
    esac
    case $verb:$current in
    run:*) _reprise_words "--cap --device --no-swap --strict --verify --trace --stats --log --" "$current" ;;
    record:*) _reprise_words "-o --device --stats --log --" "$current" ;;
    doctor:*) _reprise_words "--" "$current" ;;
    report:-*) _reprise_words "--html --sqlite --perfetto" "$current" ;;
    plan:-*) _reprise_words "--cap" "$current" ;;
    curve:-*) _reprise_words "--svg" "$current" ;;
    report:* | plan:* | curve:*) _reprise_files "$current" ;;
    esac
}

complete -F _reprise reprise
