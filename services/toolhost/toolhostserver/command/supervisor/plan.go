package supervisor

// Plan is the confinement of a command, which its supervisor sets up before the shell
// starts. A supervisor that cannot set up all of it starts nothing. Hosts send it to
// supervisors as JSON.
type Plan struct {
	// ABI is the version of Landlock that the host has found. A supervisor that finds an
	// older one starts nothing.
	ABI int `json:"abi"`
	// Read has the files and folders that can be read and run; Write those that can be
	// written too; Device those that can be read and written, but neither made nor run.
	// What does not exist is left out. Only without Bwrap.
	Read   []string `json:"read,omitempty"`
	Write  []string `json:"write,omitempty"`
	Device []string `json:"device,omitempty"`
	// Bwrap is the command line of bubblewrap up to its --seccomp: the file systems and
	// namespaces of the command. Empty: the command sees those of the host.
	Bwrap []string `json:"bwrap,omitempty"`
	// Internet allows sockets of the internet families.
	Internet bool `json:"internet,omitempty"`
	// Unix allows unix sockets. It is only set where they reach nothing outside.
	Unix bool `json:"unix,omitempty"`
	// Limits are set for each process of the command.
	Limits []Limit `json:"limits,omitempty"`
}

// Limit is a limit of setrlimit(2).
type Limit struct {
	Resource int    `json:"resource"`
	Max      uint64 `json:"max"`
}
