package verify

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kinds of others, as far as the manifests use them. The names of the fields are
// those of KEDA 2.21, cert-manager 1.19 and the Prometheus operator 0.86; what is
// not here is refused by the strict decoder.

type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount int32 `json:"minReplicaCount"`
		MaxReplicaCount int32 `json:"maxReplicaCount"`
		PollingInterval int32 `json:"pollingInterval"`
		Fallback        struct {
			FailureThreshold int32 `json:"failureThreshold"`
			Replicas         int32 `json:"replicas"`
		} `json:"fallback"`
		Advanced struct {
			ScalingModifiers struct {
				Formula    string `json:"formula"`
				Target     string `json:"target"`
				MetricType string `json:"metricType"`
			} `json:"scalingModifiers"`
			HorizontalPodAutoscalerConfig struct {
				Behavior struct {
					ScaleUp   scalingRules `json:"scaleUp"`
					ScaleDown scalingRules `json:"scaleDown"`
				} `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
		Triggers []struct {
			Type     string `json:"type"`
			Name     string `json:"name"`
			Metadata struct {
				Endpoint     string `json:"natsServerMonitoringEndpoint"`
				Account      string `json:"account"`
				Stream       string `json:"stream"`
				Consumer     string `json:"consumer"`
				LagThreshold string `json:"lagThreshold"`
			} `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

type scalingRules struct {
	StabilizationWindowSeconds int32 `json:"stabilizationWindowSeconds"`
	Policies                   []struct {
		Type          string `json:"type"`
		Value         int32  `json:"value"`
		PeriodSeconds int32  `json:"periodSeconds"`
	} `json:"policies"`
}

type certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		IsCA        bool            `json:"isCA"`
		CommonName  string          `json:"commonName"`
		SecretName  string          `json:"secretName"`
		Duration    metav1.Duration `json:"duration"`
		RenewBefore metav1.Duration `json:"renewBefore"`
		PrivateKey  struct {
			Algorithm      string `json:"algorithm"`
			Size           int    `json:"size"`
			RotationPolicy string `json:"rotationPolicy"`
		} `json:"privateKey"`
		Usages    []string `json:"usages"`
		DNSNames  []string `json:"dnsNames"`
		URIs      []string `json:"uris"`
		IssuerRef struct {
			Name string `json:"name"`
			Kind string `json:"kind"`
		} `json:"issuerRef"`
	} `json:"spec"`
}

type issuer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SelfSigned *struct{} `json:"selfSigned"`
		CA         *struct {
			SecretName string `json:"secretName"`
		} `json:"ca"`
	} `json:"spec"`
}

type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}
