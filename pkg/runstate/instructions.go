package runstate

// ShowsInstructions reports whether the model gets the instruction files of the workspace, as
// all runs did that have begun without the setting.
func ShowsInstructions(s DefinitionFields) bool {
	prompt := s.GetConfig().GetPrompt()
	return prompt == nil || prompt.InstructionFiles == nil || prompt.GetInstructionFiles()
}
