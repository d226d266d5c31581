package supervisor

import "strconv"

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
	// Folders are opened before anything else, without following links. Without Bwrap a command reads
	// each, and writes those with Write; with Bwrap its options name them by FolderArgument.
	Folders []Folder `json:"folders,omitempty"`
	// Bwrap is the command line of bubblewrap up to its --seccomp: the file systems and
	// namespaces of the command. Empty: the command sees those of the host.
	Bwrap []string `json:"bwrap,omitempty"`
	// Overlays are mounted for Bwrap to bind.
	Overlays []Overlay `json:"overlays,omitempty"`
	// Listen is an address of IPv4 on the loopback of the command's own network at which
	// the host serves a proxy; empty for none. Only with Bwrap.
	Listen string `json:"listen,omitempty"`
	// Internet allows sockets of the internet families.
	Internet bool `json:"internet,omitempty"`
	// Unix allows unix sockets. It is only set where they reach nothing outside.
	Unix bool `json:"unix,omitempty"`
	// Join has the command join the network whose namespaces are the descriptors 7 and 8. It
	// is the path of nsenter(1), which users other than root need; empty: it joins none.
	Join string `json:"join,omitempty"`
	// Limits are set for each process of the command.
	Limits []Limit `json:"limits,omitempty"`
	// Bounds are for all processes of the command together; nil means none.
	Bounds *Bounds `json:"bounds,omitempty"`
}

// Folder is a folder or a file that others may exchange while a command starts. A link in its path
// starts nothing; one that does not exist is left out.
type Folder struct {
	// Path is absolute; empty: the folder that the supervisor is started in.
	Path  string `json:"path,omitempty"`
	Write bool   `json:"write,omitempty"`
	// Pinned is a folder that is mounted on itself so that it stays at its path. A link in that is left out.
	Pinned bool `json:"pinned,omitempty"`
}

// folderFD is the descriptor of the first of Plan.Folders in bubblewrap.
const folderFD = 11

// FolderArgument is how the options --bind-fd and --ro-bind-fd name Plan.Folders[i], which one of them
// names once.
func FolderArgument(i int) string { return strconv.Itoa(folderFD + i) }

// Overlay is a folder that a command sees with its own changes on top. No path has a comma, a
// colon or a backslash.
type Overlay struct {
	// Lower is the folder, which is not changed. Upper gets the changes; Work is a folder of
	// the kernel next to it.
	Lower string `json:"lower"`
	Upper string `json:"upper"`
	Work  string `json:"work"`
	// Merged is where both are seen together.
	Merged string `json:"merged"`
}

// Bounds are what all processes of a command together may use. The supervisor measures it, and
// kills the command that uses more. 0 means no bound.
type Bounds struct {
	// Tasks are processes and threads.
	Tasks int `json:"tasks,omitempty"`
	// MemoryBytes is memory that is not that of a file.
	MemoryBytes uint64 `json:"memory_bytes,omitempty"`
	// FolderBytes is for the files in Folder.
	Folder      string `json:"folder,omitempty"`
	FolderBytes uint64 `json:"folder_bytes,omitempty"`
}

// Limit is a limit of setrlimit(2).
type Limit struct {
	Resource int    `json:"resource"`
	Max      uint64 `json:"max"`
}

// Versions of Landlock that brought something.
const (
	ABIRename   = 2 // renaming into another folder
	ABITruncate = 3
	ABITCP      = 4
	ABIDevices  = 5 // ioctl(2) of devices
	ABIScopes   = 6 // signals and abstract unix sockets
	ABIUnix     = 9 // unix sockets by path
)
