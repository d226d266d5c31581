package confinement

// systemFolders are readable by every command. What /etc has is passed entry by entry,
// because some of it is secret.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/snap",
	"/run/systemd/resolve", "/var/lib/ca-certificates", "/run/current-system",
}

// kernelFolders show the machine. At the level full a command has its own /proc and /dev.
var kernelFolders = []string{"/proc", "/sys"}

// kernelSettings are what of /proc root can change the machine with. Bubblewrap protects
// /proc/bus, /proc/irq and /proc/sysrq-trigger by itself.
var kernelSettings = []string{"/proc/sys", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/asound", "/proc/mtrr"}

// devices can be used by every command.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// secretsOfEtc are the entries of /etc that no command reads.
var secretsOfEtc = map[string]bool{
	"shadow": true, "shadow-": true, "gshadow": true, "gshadow-": true, "sudoers": true, "sudoers.d": true, "ssh": true, "security": true,
	"krb5.keytab": true, "NetworkManager": true, "wireguard": true, "openvpn": true, "ppp": true, "ipsec.secrets": true, "docker": true,
	"kubernetes": true, "rancher": true, "letsencrypt": true, "wpa_supplicant": true, "machine-id": true,
}

// toolchain is a program of developers that is installed in the home of the user.
type toolchain struct {
	// variable names the folder, relative is where it is without the variable, below the
	// home.
	variable, relative string
	// parts are the entries of the folder that are readable; empty: all of it. The others
	// can be credentials.
	parts []string
}

// toolchains are readable where they exist. Their credentials are not among them, such as
// ~/.cargo/credentials.toml, ~/.m2/settings.xml, ~/.gradle/gradle.properties, ~/.npmrc.
var toolchains = []toolchain{
	{"", "go", []string{"bin"}},
	{"GOROOT", "sdk", nil},
	{"CARGO_HOME", ".cargo", []string{"bin", "env"}},
	{"RUSTUP_HOME", ".rustup", nil},
	{"NVM_DIR", ".nvm", []string{"versions", "alias", "nvm.sh"}},
	{"VOLTA_HOME", ".volta", []string{"bin", "tools"}},
	{"FNM_DIR", ".local/share/fnm", nil},
	{"BUN_INSTALL", ".bun", []string{"bin"}},
	{"DENO_INSTALL", ".deno", []string{"bin"}},
	{"PYENV_ROOT", ".pyenv", nil},
	{"", ".local", []string{"bin", "lib", "pipx/venvs", "share/uv/python", "share/mise/installs"}},
	{"SDKMAN_DIR", ".sdkman", []string{"candidates"}},
	{"RBENV_ROOT", ".rbenv", nil},
	{"ASDF_DATA_DIR", ".asdf", []string{"shims", "installs", "bin", "lib", "plugins"}},
}

// managed are the variables of the managers whose folder a command can read completely.
var managed = map[string]bool{"RUSTUP_HOME": true, "PYENV_ROOT": true, "RBENV_ROOT": true, "FNM_DIR": true}

// cache is a package cache of the user. A command gets it by the variable: at the level
// full with its own changes on top, otherwise an empty one.
type cache struct {
	variable, relative string
	// parts are the entries without credentials; empty: all of it.
	parts []string
	// own is the folder in the command's own home.
	own string
}

// caches of packages, and of builds.
var caches = []cache{
	{"GOMODCACHE", "go/pkg/mod", nil, "go/pkg/mod"},
	{"GOCACHE", ".cache/go-build", nil, ".cache/go-build"},
	{"npm_config_cache", ".npm", []string{"_cacache"}, ".npm"},
	{"YARN_CACHE_FOLDER", ".cache/yarn", nil, ".cache/yarn"},
	{"PIP_CACHE_DIR", ".cache/pip", nil, ".cache/pip"},
	{"UV_CACHE_DIR", ".cache/uv", nil, ".cache/uv"},
	{"CARGO_HOME", ".cargo", []string{"registry", "git", "bin"}, ".cargo"},
	{"GRADLE_USER_HOME", ".gradle", []string{"caches", "wrapper"}, ".gradle"},
}

// variables are those that every command gets if the host has them.
var variables = map[string]bool{
	"PATH": true, "LANG": true, "LANGUAGE": true, "TZ": true, "USER": true, "LOGNAME": true, "SHELL": true, "CI": true, "NO_COLOR": true, "FORCE_COLOR": true,
	"GOROOT": true, "GOFLAGS": true, "GOPROXY": true, "GOSUMDB": true, "GONOSUMDB": true, "GOPRIVATE": true, "GOTOOLCHAIN": true, "GOOS": true, "GOARCH": true,
	"CGO_ENABLED": true, "CC": true, "CXX": true, "CFLAGS": true, "CXXFLAGS": true, "LDFLAGS": true, "CPPFLAGS": true, "MAKEFLAGS": true, "PKG_CONFIG_PATH": true,
	"JAVA_HOME": true, "JDK_HOME": true, "MAVEN_OPTS": true, "RUSTUP_HOME": true, "RUSTFLAGS": true, "RUSTUP_TOOLCHAIN": true, "NODE_OPTIONS": true,
	"NVM_DIR": true, "VOLTA_HOME": true, "PYENV_ROOT": true, "PYENV_VERSION": true, "PYTHONPATH": true, "VIRTUAL_ENV": true, "CONDA_PREFIX": true,
	"SDKMAN_DIR": true, "RBENV_ROOT": true, "ASDF_DATA_DIR": true, "LD_LIBRARY_PATH": true, "SSL_CERT_FILE": true, "SSL_CERT_DIR": true,
	// Files of certificate authorities, without which nothing is reached where a proxy opens TLS.
	"NODE_EXTRA_CA_CERTS": true, "REQUESTS_CA_BUNDLE": true, "CURL_CA_BUNDLE": true, "PIP_CERT": true, "GIT_SSL_CAINFO": true, "CARGO_HTTP_CAINFO": true, "NIX_SSL_CERT_FILE": true,
	// Switches of toolchains, without which a command writes or prints something else.
	"PYTHONDONTWRITEBYTECODE": true, "PYTHONUNBUFFERED": true, "PYTHONHASHSEED": true, "PYTHONUTF8": true, "PYTHONWARNINGS": true, "NODE_ENV": true,
	"RUST_BACKTRACE": true, "CARGO_INCREMENTAL": true, "CARGO_BUILD_JOBS": true, "GOEXPERIMENT": true, "GOAMD64": true,
	"SOURCE_DATE_EPOCH": true, "COLUMNS": true, "LINES": true,
}
