package serve

// DefaultListen returns the address without --listen.
func (c *Cmd) DefaultListen() string { return c.defaultListen() }
