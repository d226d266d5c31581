package confinement

// proxyAddress is where the proxy of a command listens, in the command's own network. The
// port is outside of those that Linux gives to clients.
const proxyAddress = "127.0.0.1:61080"

// proxyVariables returns the variables by which programs find the proxy. ALL_PROXY is not
// the SOCKS proxy at the same address, because HTTP clients of Python fail with one before
// they connect, unless a package for it is installed.
func proxyVariables() []string {
	all := []string{"NODE_USE_ENV_PROXY=1", "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1"}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		all = append(all, name+"=http://"+proxyAddress)
	}
	return all
}
