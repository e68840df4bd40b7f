import { Hono } from 'hono';
import type { WorkerStanding } from './fleet-worker.ts';

/**
 * What anybody may ask a worker: whether its process works, and whether it takes trials. An engine or a
 * service that is down is no reason to end the worker: its trials wait, and finished ones are kept.
 */
export function healthRoutes(worker: { standing(): WorkerStanding }): Hono {
  const routes = new Hono();
  routes.get('/healthz', (context) => {
    const { stuck } = worker.standing();
    const troubles = stuck.map((name) => `the loop ${name} is stuck`);
    const ok = troubles.length === 0;
    return context.json({ ok, troubles }, ok ? 200 : 503);
  });
  routes.get('/readyz', (context) => {
    const { mode, running } = worker.standing();
    const ready = mode === 'working';
    return context.json({ ready, mode, running }, ready ? 200 : 503);
  });
  return routes;
}
