# Completion of harness for fish. Load it with: harness completion fish | source
function __harness_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for reply in ($words[1] complete -- $words[2..-1] $current 2>/dev/null)
        switch $reply
            case :files
                __fish_complete_path $current
            case :dirs
                __fish_complete_directories $current
            case '*'
                echo $reply
        end
    end
end
complete -c harness -f -a '(__harness_complete)'
