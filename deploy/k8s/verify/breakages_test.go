package verify

// breakages each break a rendering: old is replaced once by new, and the check reports want.
var breakages = []struct{ overlay, check, old, new, want string }{
	{"dev", "decoding", "readOnlyRootFilesystem: true", "readOnlyRootFileSystem: true", "unknown field"},
	{"dev", "decoding", "kind: PodDisruptionBudget", "kind: PodDisruptionBudgets", "a kind that these tests do not know"},
	{"dev", "decoding", "replicas: 1", "replicas: one", "cannot unmarshal"},
	{"prod-keda", "decoding", "lagThreshold:", "lagTreshold:", "unknown field"},
	{"everything", "decoding", "dnsNames:", "dnsName:", "unknown field"},
	{"everything", "certificates", "harness://role/turn", "harness://role/toolhost", "certificate turn has the URIs"},

	{"dev", "selectors", "    matchLabels:\n      app.kubernetes.io/component: repair", "    matchLabels:\n      app.kubernetes.io/component: repairs", "workload repair selects no pods"},
	{"dev", "selectors", "  selector:\n    app.kubernetes.io/component: gateway", "  selector:\n    app.kubernetes.io/component: door", "service gateway selects no pods"},
	{"dev", "selectors", "  selector:\n    app.kubernetes.io/component: gateway", "  selector:\n    app.kubernetes.io/component: turn", "service gateway selects the pods of turn"},
	{"dev", "selectors", "serviceName: toolhost", "serviceName: tools", "names the service tools"},
	{"dev", "selectors", "app.kubernetes.io/component: toolhost\n  policyTypes", "app.kubernetes.io/component: tool\n  policyTypes", "policy toolhost selects no pods"},
	{"dev", "selectors", "harnessmesh.io/bus: client\n    ports", "harnessmesh.io/bus: clients\n    ports", "a peer of policy nats selects no pods"},
	{"prod", "selectors", "labelSelector:\n          matchLabels:\n            app.kubernetes.io/name: harnessmesh", "labelSelector:\n          matchLabels:\n            app.kubernetes.io/name: nats", "does not count its own pods"},
	{"prod-keda", "selectors", "    kind: Deployment\n    name: turn", "    kind: Deployment\n    name: turns", "scales Deployment turns, which is not there"},
	{"everything", "selectors", "port: metrics\n  selector:\n    matchLabels:\n      harnessmesh.io/workload: role", "port: metrics\n  selector:\n    matchLabels:\n      harnessmesh.io/workload: roles", "pod monitor harness selects no pods"},

	{"dev", "ports", "targetPort: grpc", "targetPort: http2", "service gateway: gateway has no port http2"},
	{"dev", "ports", "            port: 7448", "            port: 7449", "no port 7449"},
	{"dev", "ports", "            port: monitor", "            port: 8223", "nats: no port 8223"},
	{"dev", "ports", "- port: 6222", "- port: 6223", "policy nats: nats has no port 6223"},
	{"dev", "ports", "HARNESS_METRICS: 0.0.0.0:9090", "HARNESS_METRICS: 0.0.0.0:9091", "which is not its port metrics"},
	{"dev", "ports", "HARNESS_LISTEN: 0.0.0.0:7447", "HARNESS_LISTEN: 127.0.0.1:7447", "no address that pods can be reached at"},
	{"everything", "ports", "port: metrics", "port: metric", "pod monitor harness: gateway has no port metric"},

	{"dev", "security", "enforce: restricted", "enforce: baseline", "does not enforce"},
	{"dev", "security", "automountServiceAccountToken: false", "automountServiceAccountToken: true", "service account's token"},
	{"dev", "security", "runAsNonRoot: true", "runAsNonRoot: false", "may run as root"},
	{"dev", "security", "          type: RuntimeDefault", "          type: Unconfined", "has no seccomp profile"},
	{"dev", "security", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "may write to its root file system"},
	{"dev", "security", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "may gain privileges"},
	{"dev", "security", "            - ALL", "            - NET_RAW", "keeps capabilities"},

	{"dev", "security", "        - --sandbox-least=kernel\n", "", "may run commands without a sandbox"},

	{"dev", "images", "nats:2.15.2-alpine", "nats:latest", "is not pinned"},
	{"dev", "images", "image: harnessmesh/harness-toolhost:dev\n        livenessProbe", "image: harnessmesh/harness:dev\n        livenessProbe", "toolhost runs the image harness"},

	{"dev", "grace", "--drain=60s", "--drain=71s", "turn has 1m15s to end and needs 1m16s"},
	{"dev", "grace", "seconds: 5", "seconds: 20", "gateway has 45s to end and needs 55s"},
	{"dev", "grace", "--drain=15s", "--drain=900ms", "shorter than a heartbeat"},

	{"dev", "resources", "          limits:\n            memory: 512Mi\n", "", "has no limit of memory"},
	{"dev", "resources", "          requests:\n            cpu: 100m\n", "          requests:\n", "has no request of CPU"},
	{"dev", "resources", "      - emptyDir:\n          sizeLimit: 256Mi", "      - emptyDir: {}", "has no bound"},

	{"dev", "volumes", "- mountPath: /workspaces\n          name: workspaces", "- mountPath: /workspaces\n          name: workspace", "toolhost mounts the volume workspace, which is not there"},
	{"prod", "volumes", "        - mountPath: /tls\n          name: tls\n          readOnly: true\n", "", "has the volume tls and mounts it nowhere"},

	{"prod", "secrets", "secretName: tls-repair", "secretName: tls-turn", "repair has the secret tls-turn"},
	{"prod", "secrets", "name: provider-keys", "name: input-key", "inference has the secret input-key"},
	{"prod", "secrets", "name: nats-compaction", "name: provider-keys", "compaction has the secret provider-keys"},
	{"prod", "secrets", "          items:\n          - key: ca.crt\n            path: ca.crt\n          secretName: tls-nats", "          secretName: tls-nats", "provision has the secret tls-nats"},
	{"dev", "secrets", "- configMapRef:\n            name: harness-", "- configMapRef:\n            name: harnes-", "which is not there"},

	{"everything", "certificates", "secretName: tls-toolhost\n  uris", "secretName: tls-tools\n  uris", "toolhost uses tls-toolhost, and no certificate makes it"},
	{"everything", "certificates", "  issuerRef:\n    kind: Issuer\n    name: mesh\n", "  issuerRef:\n    kind: Issuer\n    name: mash\n", "its issuer mash is not there"},

	{"dev", "network", "name: default-deny\n  namespace: harness\nspec:\n  podSelector: {}\n  policyTypes:\n  - Ingress\n  - Egress", "name: default-deny\n  namespace: harness\nspec:\n  podSelector: {}\n  policyTypes:\n  - Ingress", "no policy denies"},
	{"dev", "network", "app.kubernetes.io/component: turn\n  policyTypes", "app.kubernetes.io/component: repair\n  policyTypes", "repair may connect to [dns internet nats toolhost]"},
	{"dev", "network", "app.kubernetes.io/component: inference\n  policyTypes", "app.kubernetes.io/component: compaction\n  policyTypes", "compaction may connect to [dns internet nats]"},
	{"dev", "network", "      operator: NotIn\n      values:\n      - toolhost", "      operator: NotIn\n      values:\n      - nats", "toolhost may connect to [dns nats]"},
	{"dev", "network", "  egress:\n  - ports:\n    - port: 4222\n      protocol: TCP\n    to:\n    - podSelector:\n        matchLabels:\n          app.kubernetes.io/name: nats\n", "  egress:\n  - ports:\n    - port: 4222\n      protocol: TCP\n", "everywhere"},

	{"dev", "entries", "      - repair\n      - turn\n      - stopdecision\n  policyTypes:\n  - Egress", "      - turn\n      - stopdecision\n  policyTypes:\n  - Egress", "toolhost lets repair in, which may not connect to it"},
	{"dev", "entries", "          - repair\n          - turn\n", "          - repair\n", "turn may connect to toolhost, which does not let it in"},

	{"prod", "storage", `HARNESS_PARTITIONS: "4"`, `HARNESS_PARTITIONS: "8"`, "are set aside in a store of 90 GiB"},
	{"prod", "storage", "name: data\n    spec:\n      accessModes:\n      - ReadWriteOnce\n      resources:\n        requests:\n          storage: 100Gi", "name: data\n    spec:\n      accessModes:\n      - ReadWriteOnce\n      resources:\n        requests:\n          storage: 80Gi", "is on a disk of 80Gi"},
	{"prod", "storage", `HARNESS_REPLICAS: "3"`, `HARNESS_REPLICAS: "1"`, "1 copies on 3 servers"},
	{"prod", "storage", "nats-route://nats-2.nats-headless:6222", "", "2 routes for 3 servers"},
	{"prod", "storage", "sync_interval: always", "sync_interval: 2m", "does not sync always"},

	{"prod-keda", "scaler", "stream: RUNS_3", "stream: RUNS_2", "looks at RUNS_2 and not at RUNS_3"},
	{"prod-keda", "scaler", "formula: p0 + p1 + p2 + p3", "formula: p0 + p1 + p2", "not the sum"},
	{"prod-keda", "scaler", `HARNESS_PARTITIONS: "4"`, `HARNESS_PARTITIONS: "5"`, "4 triggers for 5 partitions"},
	{"prod-keda", "scaler", "minReplicaCount: 2", "minReplicaCount: 1", "does not keep two"},
	{"prod-keda", "scaler", "account: $G", "account: G", "asks nobody that answers"},

	{"dev", "bus", "          periodSeconds: 1\n          timeoutSeconds: 2", "          periodSeconds: 5\n          timeoutSeconds: 2", "the readiness probe of nats costs more than 2 s"},
	{"dev", "bus", "failureThreshold: 900", "failureThreshold: 900\n          initialDelaySeconds: 5", "the startup probe of nats costs more than 2 s"},
	{"dev", "bus", "image: nats:", "lifecycle: {preStop: {exec: {command: [nats-server, -sl=ldm]}}}\n        image: nats:", "1 servers of nats, lame duck mode true"},
	{"prod", "bus", "-sl=ldm=", "-sl=quit=", "3 servers of nats, lame duck mode false"},
}
