# Completion of harness for bash. Load it with: source <(harness completion bash)
_harness() {
	local line=${COMP_LINE:0:COMP_POINT} words word before reply i IFS=$' \t\n'
	# Bash splits words at = and : too, so the line is split again at spaces.
	read -ra words <<<"$line"
	case $line in *[[:space:]]) words+=("") ;; esac
	word=${words[${#words[@]}-1]}
	# Bash replaces only what follows the last = or :.
	before=$word
	case ${COMP_WORDS[COMP_CWORD]} in
	= | :) ;;
	*) before=${word%"${COMP_WORDS[COMP_CWORD]}"} ;;
	esac
	COMPREPLY=()
	while IFS= read -r reply; do
		case $reply in
		:files)
			while IFS= read -r i; do COMPREPLY+=("$i"); done < <(compgen -f -- "${word#"$before"}")
			compopt -o filenames 2>/dev/null
			;;
		:dirs)
			while IFS= read -r i; do COMPREPLY+=("$i"); done < <(compgen -d -- "${word#"$before"}")
			compopt -o filenames 2>/dev/null
			;;
		*)
			reply=${reply%%$'\t'*}
			COMPREPLY+=("${reply#"$before"}")
			;;
		esac
	done < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
}
complete -F _harness harness
