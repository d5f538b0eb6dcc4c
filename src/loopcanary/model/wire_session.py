"""A session and its loops as JSON-able dicts and back; see model.wire."""

from __future__ import annotations

from loopcanary.model.session import LoopHealth, Session, SessionEnd
from loopcanary.model.wire_fields import Fields, Json, ms, optional_ms, time_to_text
from loopcanary.model.wire_traces import traces_of, traces_to_dict


def _optional_time(wall_ns: int | None) -> str | None:
    return None if wall_ns is None else time_to_text(wall_ns)


def loop_to_dict(loop: LoopHealth) -> Json:
    """Figures of one loop."""
    return {
        "thread": loop.thread,
        "kind": loop.kind,
        "turns": loop.turns,
        "callbacks": loop.callbacks,
        "utilization": loop.utilization,
        "busy_ms": ms(loop.busy_ns),
        "window_ms": ms(loop.window_ns),
        "delay_ms": {
            "p50": ms(loop.delay_p50_ns),
            "p99": ms(loop.delay_p99_ns),
            "max": ms(loop.delay_max_ns),
            "mean": ms(loop.delay_mean_ns),
            "p90": ms(loop.delay_p90_ns),
            "p99_9": ms(loop.delay_p999_ns),
        },
        "queue_ms": {"mean": ms(loop.queue_mean_ns), "max": ms(loop.queue_max_ns)},
        "stalls": loop.stalls,
        "stalled_ms": ms(loop.stalled_ns),
        "callback_weighted_ms": optional_ms(loop.callback_weighted_ns),
        "slices": loop.slices,
        "slices_congested": loop.slices_congested,
        "gc_ms": optional_ms(loop.gc_ns),
        "run_queue_ms": optional_ms(loop.run_queue_ns),
        "histogram": [{"up_to_ms": ms(upper), "turns": turns} for upper, turns in loop.histogram],
    }


def _delay(fields: Fields) -> dict[str, int]:
    return {
        "delay_p50_ns": fields.ns("p50"),
        "delay_p99_ns": fields.ns("p99"),
        "delay_max_ns": fields.ns("max"),
        "delay_mean_ns": fields.ns("mean"),
        "delay_p90_ns": fields.ns("p90", 0.0),
        "delay_p999_ns": fields.ns("p99_9", 0.0),
    }


def _queue(fields: Fields) -> tuple[int, int]:
    return fields.ns("mean"), fields.ns("max")


def _bucket(fields: Fields) -> tuple[int, int]:
    return fields.ns("up_to_ms"), fields.integer("turns")


def _loop(fields: Fields) -> LoopHealth:
    queue_mean, queue_max = fields.optional("queue_ms", _queue) or (0, 0)
    return LoopHealth(
        thread=fields.text("thread"),
        kind=fields.text("kind"),
        turns=fields.integer("turns"),
        callbacks=fields.integer("callbacks", 0),
        busy_ns=fields.ns("busy_ms", 0.0),
        window_ns=fields.ns("window_ms", 0.0),
        utilization=fields.number("utilization"),
        queue_mean_ns=queue_mean,
        queue_max_ns=queue_max,
        stalls=fields.integer("stalls", 0),
        stalled_ns=fields.ns("stalled_ms", 0.0),
        callback_weighted_ns=fields.optional_ns("callback_weighted_ms"),
        slices=fields.integer("slices", 0),
        slices_congested=fields.integer("slices_congested", 0),
        gc_ns=fields.optional_ns("gc_ms"),
        run_queue_ns=fields.optional_ns("run_queue_ms"),
        histogram=fields.many("histogram", _bucket),
        **fields.one("delay_ms", _delay),
    )


def session_to_dict(session: Session) -> Json:
    """The session as contract 7.3 shows it, with every fact it holds."""
    return {
        "id": session.id,
        "name": session.name,
        "pid": session.pid,
        "parent_pid": session.parent_pid,
        "host": session.host,
        "python": session.python,
        "engine": session.engine,
        "started_at": time_to_text(session.started_wall_ns),
        "ended_at": _optional_time(session.ended_wall_ns),
        "end": session.end.value,
        "threshold_ms": ms(session.threshold_ns),
        "version": session.version,
        "qualifier": session.qualifier,
        "user": session.user,
        "network": session.network,
        "command": session.command,
        "machine": session.machine,
        "system": session.system,
        "cores": session.cores,
        "memory_bytes": session.memory_bytes,
        "memory_limit_bytes": session.memory_limit_bytes,
        "cpu_limit": session.cpu_limit,
        "loops": [loop_to_dict(loop) for loop in session.loops],
        "statistics": dict(session.statistics),
        **traces_to_dict(session.traces),
        "imported_at": _optional_time(session.imported_wall_ns),
        "imported_from": session.imported_from,
    }


def session_from_dict(value: object) -> Session:
    """The session that `session_to_dict` wrote, or an older schema-1 writer. Raises WireError."""
    fields = Fields(value, "session")
    return Session(
        id=fields.text("id"),
        name=fields.text("name"),
        pid=fields.integer("pid"),
        parent_pid=fields.integer("parent_pid", 0),
        host=fields.text("host"),
        python=fields.text("python"),
        engine=fields.text("engine", "native"),
        started_wall_ns=fields.time("started_at"),
        ended_wall_ns=fields.optional_time("ended_at"),
        end=fields.choice("end", SessionEnd),
        threshold_ns=fields.ns("threshold_ms", 0.0),
        version=fields.optional_text("version"),
        qualifier=fields.optional_text("qualifier"),
        user=fields.optional_text("user"),
        network=fields.optional_text("network"),
        command=fields.text("command", ""),
        machine=fields.text("machine", ""),
        system=fields.text("system", ""),
        cores=fields.integer("cores", 0),
        memory_bytes=fields.integer("memory_bytes", 0),
        memory_limit_bytes=fields.optional_integer("memory_limit_bytes"),
        cpu_limit=fields.optional_number("cpu_limit"),
        loops=fields.many("loops", _loop),
        statistics=fields.counts("statistics"),
        traces=traces_of(fields),
        imported_wall_ns=fields.optional_time("imported_at"),
        imported_from=fields.optional_text("imported_from"),
    )
