// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
//
// A law as a congestion control of the kernel's TCP. This adapter only moves fields: from the socket into a report,
// from the settings into the socket. What a report means and what a law makes of it is in Rust (lib.rs, ../src/tcp_adapter.rs).
// NAME is the law's name, ECN whether it listens to marks. Structs of the kernel are declared with the fields that
// are used here; their offsets are found when the program is loaded (CO-RE).

#include <stdbool.h>

typedef signed int __s32;
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

struct sock;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define KERNEL __attribute__((preserve_access_index))
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

struct sock_common {
	volatile __u8 skc_state;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
} KERNEL;

struct inet_sock {
	struct sock sk;
} KERNEL;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	struct {
		__u8 pending;
	} icsk_ack;
} KERNEL;

struct tcp_rack {
	__u64 mstamp;
} KERNEL;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 packets_out;
	__u32 max_packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 rcv_nxt;
	__u32 srtt_us;
	__u64 tcp_mstamp;
	__u64 first_tx_mstamp;
	__u64 delivered_mstamp;
	__u8 ecn_flags;
	struct tcp_rack rack;
} KERNEL;

struct rate_sample {
	__u64 prior_mstamp;
	__u32 prior_delivered;
	__u32 snd_interval_us;
	long rtt_us;
	bool is_app_limited;
} KERNEL;

enum tcp_ca_event { CA_EVENT_ECN_NO_CE = 4, CA_EVENT_ECN_IS_CE = 5 };
enum tcp_ca_state { TCP_CA_Open = 0, TCP_CA_Recovery = 3, TCP_CA_Loss = 4 };

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

// As in the kernel's net/tcp.h and net/inet_connection_sock.h, which give them no BTF.
#define TCP_CONG_NON_RESTRICTED 0x1
#define TCP_CONG_NEEDS_ECN 0x2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_SYN_SENT 2
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
#define TCP_INFINITE_SSTHRESH 0x7fffffff

// ---- Shared with Rust: names and sizes are those of lib.rs and tcp_adapter.rs. ----

#define FLOW_WORDS 64
#define CONFIG_WORDS 69

struct SocketReport {
	__u64 now_us, sent_us, delivered_us, newest_us;
	__s64 rtt_us;
	__u64 srtt_eighths_us, send_interval_us, mss, delivered, delivered_ce, prior_delivered, in_flight, lost, window, max_packets_out;
	__u64 app_limited, timeout, in_recovery;
};

struct SocketSettings {
	__u64 window_packets, pacing_bytes_per_s;
};

struct narrows_slot {
	struct SocketReport report;
	struct SocketSettings settings;
	__u64 flow[FLOW_WORDS];
};

struct narrows_config {
	__u64 words[CONFIG_WORDS];
};

struct narrows_call {
	__u64 words[16];
};

#define RUST extern __hidden
RUST void narrows_begin(struct narrows_slot *slot, struct narrows_config *config);
RUST void narrows_acked(struct narrows_slot *slot);
RUST void narrows_lost(struct narrows_slot *slot);
RUST void narrows_law_ack(struct narrows_slot *slot, struct narrows_call *call);
RUST void narrows_law_loss(struct narrows_slot *slot, struct narrows_call *call);
RUST void narrows_law_base_rtt(struct narrows_slot *slot, struct narrows_call *call);

// ---- Maps. ----

// State of one socket. The receiving side keeps prior_rcv_nxt and congestion_seen (RFC 8257 3.2). inet_diag hands the
// whole struct to user space: its layout is that of FlowStorage in ../src/sockets.rs.
struct storage {
	struct narrows_slot slot;
	__u32 has_begun;
	__u32 prior_rcv_nxt;
	__u32 congestion_seen;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct storage);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct narrows_config);
} config SEC(".maps");

// Number of sockets without memory for a flow, which run without the law.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} refused SEC(".maps");

// A flow without a socket, and the call to make: for tests.
struct trial {
	struct narrows_slot slot;
	struct narrows_call call;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trial);
} trials SEC(".maps");

// ---- From the socket, to the socket. ----

static __always_inline void read_socket(struct SocketReport *report, struct tcp_sock *tp)
{
	report->now_us = tp->tcp_mstamp;
	report->sent_us = tp->first_tx_mstamp;
	report->newest_us = tp->rack.mstamp;
	report->srtt_eighths_us = tp->srtt_us;
	report->mss = tp->mss_cache;
	report->delivered = tp->delivered;
	report->delivered_ce = tp->delivered_ce;
	report->in_flight = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	report->lost = tp->lost_out;
	report->window = tp->snd_cwnd;
	report->max_packets_out = tp->max_packets_out;
}

static __always_inline void apply_settings(struct sock *sk, struct tcp_sock *tp, const struct SocketSettings *settings)
{
	__u32 window = settings->window_packets;
	__u32 clamp = tp->snd_cwnd_clamp;
	__u64 pacing_rate = settings->pacing_bytes_per_s;
	__u64 max_pacing_rate = sk->sk_max_pacing_rate;

	tp->snd_cwnd = window < clamp ? window : clamp;
	// SO_MAX_PACING_RATE holds for every law.
	sk->sk_pacing_rate = pacing_rate < max_pacing_rate ? pacing_rate : max_pacing_rate;
	if (settings->pacing_bytes_per_s != ~0ULL && sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

static __always_inline struct storage *storage_of(struct sock *sk)
{
	return bpf_sk_storage_get(&flows, sk, 0, 0);
}

// Creates the storage of a flow, or resets it. Its law begins when a round trip is known.
static __always_inline struct storage *create_storage(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct storage *storage = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (storage) {
		storage->prior_rcv_nxt = tp->rcv_nxt;
		storage->congestion_seen = 0;
		storage->has_begun = 0;
	}
	return storage;
}

// A kernel was seen that left out calls of hooks for milliseconds, and hook_init is one. So a flow is made where it is missed:
// without one a receiver would echo each mark for a whole round trip (RFC 3168), and a sender would have no law.
static __always_inline struct storage *storage_or_new(struct sock *sk)
{
	struct storage *storage = storage_of(sk);

	// A client receives the acknowledgement of its SYN before hook_init is called.
	if (!storage && sk->__sk_common.skc_state != TCP_SYN_SENT)
		storage = create_storage(sk);
	return storage;
}

static __always_inline void begin(struct sock *sk, struct tcp_sock *tp, struct storage *storage)
{
	__u32 zero = 0;
	struct narrows_config *flow_config = bpf_map_lookup_elem(&config, &zero);

	if (!flow_config)
		return;
	read_socket(&storage->slot.report, tp);
	narrows_begin(&storage->slot, flow_config);
	storage->has_begun = 1;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	apply_settings(sk, tp, &storage->slot.settings);
}

// ---- Hooks. ----

// A law receives its path when it begins, so it waits for the first round trip where the handshake has left none: the
// SYN-ACK was sent twice, the server took the data of the SYN (TCP Fast Open), or the law was chosen before the
// SYN-ACK came. The kernel's initial window holds until then.
SEC("struct_ops")
void BPF_PROG(hook_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct storage *storage = create_storage(sk);
	__u32 zero = 0;
	__u64 *count;

	if (!storage) {
		count = bpf_map_lookup_elem(&refused, &zero);
		if (count)
			__sync_fetch_and_add(count, 1);
		return;
	}
	if (tp->srtt_us)
		begin(sk, tp, storage);
}

// The socket closes, or chooses another law. Without the storage it is not listed any more.
SEC("struct_ops")
void BPF_PROG(hook_release, struct sock *sk)
{
	bpf_sk_storage_delete(&flows, sk);
}

SEC("struct_ops")
void BPF_PROG(hook_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct storage *storage = storage_or_new(sk);
	struct SocketReport *report;

	if (!storage)
		return;
	if (!storage->has_begun) {
		if (tp->srtt_us)
			begin(sk, tp, storage);
		return;
	}
	report = &storage->slot.report;
	read_socket(report, tp);
	report->delivered_us = rs->prior_mstamp;
	report->prior_delivered = rs->prior_delivered;
	report->rtt_us = rs->rtt_us;
	report->send_interval_us = rs->snd_interval_us;
	report->app_limited = rs->is_app_limited;
	narrows_acked(&storage->slot);
	apply_settings(sk, tp, &storage->slot.settings);
}

SEC("struct_ops")
void BPF_PROG(hook_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct storage *storage = storage_of(sk);
	struct SocketReport *report;

	if (!storage || !storage->has_begun)
		return;
	if (new_state != TCP_CA_Recovery && new_state != TCP_CA_Loss)
		return;
	report = &storage->slot.report;
	read_socket(report, tp);
	report->timeout = new_state == TCP_CA_Loss;
	report->in_recovery = tp->inet_conn.icsk_ca_state >= TCP_CA_Recovery;
	narrows_lost(&storage->slot);
	apply_settings(sk, tp, &storage->slot.settings);
}

// The kernel asks where slow start would end; the law keeps its own threshold. The answer is only shown.
SEC("struct_ops")
__u32 BPF_PROG(hook_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd < 2 ? 2 : tp->snd_cwnd;
}

// The law's window holds, also where the kernel finds that a loss was none.
SEC("struct_ops")
__u32 BPF_PROG(hook_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd;
}

#if ECN
static __always_inline void echo(struct tcp_sock *tp, bool congestion)
{
	if (congestion)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

// The receiver's rule of RFC 8257 3.2: an acknowledgement covers packets whose marks are alike. When the mark
// changes, a delayed ACK is sent first, with the old state.
SEC("struct_ops")
void BPF_PROG(hook_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct storage *storage;
	bool congestion;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	storage = storage_or_new(sk);
	if (!storage)
		return;
	congestion = event == CA_EVENT_ECN_IS_CE;
	if (congestion != storage->congestion_seen) {
		if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
			echo(tp, storage->congestion_seen);
			bpf_tcp_send_ack(tp, storage->prior_rcv_nxt);
		}
		tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
	}
	storage->prior_rcv_nxt = tp->rcv_nxt;
	storage->congestion_seen = congestion;
	echo(tp, congestion);
}
#endif

// ---- Which sockets: those of a cgroup. ----

#define BPF_SOCK_OPS_TCP_CONNECT_CB 3
#define BPF_SOCK_OPS_TCP_LISTEN_CB 11
#define SOL_TCP 6
#define TCP_CONGESTION 13

struct bpf_sock_ops {
	__u32 op;
};

// The law's name as the loader gave it.
const volatile char tcp_name[16] = "narrows_" TEXT(NAME);

// Before the SYN leaves and before a listener receives one: later, ECN would be refused.
SEC("sockops")
int choose(struct bpf_sock_ops *ctx)
{
	char name[16];

	if (ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB && ctx->op != BPF_SOCK_OPS_TCP_LISTEN_CB)
		return 1;
	for (int index = 0; index < 16; index++)
		name[index] = tcp_name[index];
	bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops law = {
	.init = (void *)hook_init,
	.release = (void *)hook_release,
	.cong_control = (void *)hook_cong_control,
	.set_state = (void *)hook_set_state,
	.ssthresh = (void *)hook_ssthresh,
	.undo_cwnd = (void *)hook_undo_cwnd,
#if ECN
	.cwnd_event = (void *)hook_cwnd_event,
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
#else
	.flags = TCP_CONG_NON_RESTRICTED,
#endif
	.name = "narrows_" TEXT(NAME),
};

// ---- Tests: a call without a socket. ----

struct trial_kind {
	__u64 kind;
};

SEC("syscall")
int try_call(struct trial_kind *ctx)
{
	__u32 zero = 0;
	struct trial *trial = bpf_map_lookup_elem(&trials, &zero);
	struct narrows_config *flow_config = bpf_map_lookup_elem(&config, &zero);

	if (!trial || !flow_config)
		return 1;
	switch (ctx->kind) {
	case 0: narrows_begin(&trial->slot, flow_config); break;
	case 1: narrows_acked(&trial->slot); break;
	case 2: narrows_lost(&trial->slot); break;
	case 3: narrows_law_ack(&trial->slot, &trial->call); break;
	case 4: narrows_law_loss(&trial->slot, &trial->call); break;
	case 5: narrows_law_base_rtt(&trial->slot, &trial->call); break;
	default: return 2;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
