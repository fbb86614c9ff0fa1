package serve

import (
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are what Prometheus scrapes.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	underWay prometheus.Gauge
	batch    prometheus.Histogram
	refused  *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gsrc_requests_total", Help: "Inference requests that were answered, by model, protocol (http or grpc) and code."},
			[]string{"model", "protocol", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gsrc_request_duration_seconds", Help: "Time from the headers of an inference request to its answer.",
			Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}}, []string{"model", "protocol"}),
		underWay: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gsrc_requests_under_way", Help: "Inference requests that are being answered."}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gsrc_batch_nodes", Help: "Nodes that were answered for together.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12)}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gsrc_refusals_total", Help: "Requests that were refused, bodies and answers that were cut off (slow) and connections that were closed (connections), by reason."},
			[]string{"reason"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.underWay, m.batch, m.refused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// dropped counts the lines that were not logged.
func (m *metrics) dropped(l *LogWriter) {
	if l != nil {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "gsrc_log_lines_dropped_total", Help: "Lines of the log that were dropped because the log was not read in time."},
			func() float64 { return float64(l.Dropped()) }))
	}
}

// gauge registers what is asked for its value when it is scraped.
func (m *metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// memory registers the gauges of what is held.
func (m *metrics) memory(b *budget.Budget, in *intake, cs *connections) {
	m.gauge("gsrc_memory_limit_bytes", "Memory that the server may take.", func() float64 { return float64(b.Total()) })
	m.gauge("gsrc_memory_held_bytes", "Memory that is held for the models, the graph, and requests.", func() float64 { return float64(b.Used()) })
	m.gauge("gsrc_bodies_coming", "Bodies of requests that have not come whole.", func() float64 { n, _ := in.unfinished(); return float64(n) })
	m.gauge("gsrc_connections", "Connections of clients.", func() float64 { return float64(cs.number()) })
}

// graph has the state of the online graph told.
func (m *metrics) graph(r *infer.Graph) {
	m.gauge("gsrc_graph_version", "Version of the online graph.", func() float64 { return float64(r.Snapshot().Version) })
	m.gauge("gsrc_graph_nodes", "Nodes of the online graph.", func() float64 { return float64(r.Snapshot().Nodes()) })
	m.gauge("gsrc_graph_edges", "Edges of the online graph, each undirected one once.", func() float64 { return float64(r.Snapshot().Edges()) })
	m.gauge("gsrc_graph_versions_held", "Versions of the online graph in memory.", func() float64 { return float64(r.Versions()) })
}
