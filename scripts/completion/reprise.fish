# Completion of reprise for fish.
set -l verbs run record report plan curve doctor help
set -l running '__fish_seen_subcommand_from run record'

complete -c reprise -f
complete -c reprise -n "not __fish_seen_subcommand_from $verbs" -a run -d 'run a program under a memory cap'
complete -c reprise -n "not __fish_seen_subcommand_from $verbs" -a record -d 'run a program and record it'
complete -c reprise -n "not __fish_seen_subcommand_from $verbs" -a report -d 'what the memory was spent on'
complete -c reprise -n "not __fish_seen_subcommand_from $verbs" -a plan -d 'what the planner would do under a cap'
complete -c reprise -n "not __fish_seen_subcommand_from $verbs" -a curve -d 'memory against time'
complete -c reprise -n "not __fish_seen_subcommand_from $verbs" -a doctor -d 'what would keep reprise from working'
complete -c reprise -n "not __fish_seen_subcommand_from $verbs" -a help -d 'how to use it'

complete -c reprise -n '__fish_seen_subcommand_from run plan' -l cap -x -a '1GiB 2GiB 4GiB 7GiB 8GiB 16GiB 24GiB' -d 'memory cap'
complete -c reprise -n $running -l device -x -a 'auto gpu cpu' -d 'driver to use'
complete -c reprise -n '__fish_seen_subcommand_from run' -l no-swap -d 'recomputation alone'
complete -c reprise -n '__fish_seen_subcommand_from run' -l strict -d 'unmap what is dropped'
complete -c reprise -n '__fish_seen_subcommand_from run' -l verify -x -a 'always sample' -d 'how much is compared'
complete -c reprise -n '__fish_seen_subcommand_from run' -l trace -r -F -d 'record the run'
complete -c reprise -n $running -l stats -r -F -d 'write figures at the end'
complete -c reprise -n $running -l log -x -a 'quiet error warning info debug' -d 'what is told'
complete -c reprise -n '__fish_seen_subcommand_from record' -s o -r -F -d 'where to'
complete -c reprise -n '__fish_seen_subcommand_from report plan curve' -F
complete -c reprise -n '__fish_seen_subcommand_from report' -l html -r -F -d 'a page for a browser'
complete -c reprise -n '__fish_seen_subcommand_from report' -l sqlite -r -F -d 'a database'
complete -c reprise -n '__fish_seen_subcommand_from report' -l perfetto -r -F -d 'a trace of Perfetto'
complete -c reprise -n '__fish_seen_subcommand_from curve' -l svg -r -F -d 'draw it'
