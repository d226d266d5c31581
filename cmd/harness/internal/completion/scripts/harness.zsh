#compdef harness
# Completion of harness for zsh. Load it with: source <(harness completion zsh)
_harness() {
	local reply
	local -a replies found
	replies=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	for reply in "${replies[@]}"; do
		case $reply in
		'') ;;
		:files) compset -P '*='; _files; return ;;
		:dirs) compset -P '*='; _files -/; return ;;
		*) found+=("${${reply%%$'\t'*}//:/\\:}:${reply#*$'\t'}") ;;
		esac
	done
	_describe harness found
}
if [ "${funcstack[1]}" = _harness ]; then
	_harness "$@"
else
	compdef _harness harness
fi
