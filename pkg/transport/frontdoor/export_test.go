package frontdoor

import "time"

// WaitFirst makes a door wait less for the first byte of a client.
func (d *Door) WaitFirst(wait time.Duration) { d.first = wait }
