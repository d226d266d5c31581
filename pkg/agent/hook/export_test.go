package hook

// Topics returns the topics, in the order in which a run reaches them first.
func Topics() []Topic { return topics }
