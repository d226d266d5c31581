// Package usable proves that developers' commands work in the sandbox at the level full.
//
// TestFixtures runs small projects in a new home, in which only the toolchains are the user's:
// Go, npm, Python, Rust, make, and git in a repository, a linked worktree and a submodule.
// They need no network and no package of others.
//
// With the tag usable there is more, which needs package registries:
//
//	make sandbox-usable
//
// TestRegistries runs projects with a dependency, without network on caches that were filled
// outside, and with an allow-list of hosts on empty caches.
//
// TestProjects runs the commands of testdata/projects.json. They are from the CI files of public
// projects. Each runs outside and in the sandbox on the same tree, and must behave alike: the
// exit code and the names of the files that it makes, changes and removes. A file counts only if
// the command does the same to it each time that it runs outside. The outcome is a table in
// docs/sandbox.md, which -update writes.
//
// The projects come from the package registries that this machine is set up to use. Nothing of
// them is part of this repository.
package usable
