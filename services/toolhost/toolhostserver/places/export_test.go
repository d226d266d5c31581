package places

// SetSettled has each change of a file count as one of long ago.
func (p *Places) SetSettled() { p.settled = 0 }
