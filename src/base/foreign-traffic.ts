import type { EventEmitter } from 'node:events';
import { isIPv4 } from 'node:net';

/**
 * Ends the connection or session that the traffic belongs to, and gives the reason: `error` is unexpected, so
 * it is a defect. May be called again after the end.
 */
export type EndTraffic = (error: unknown) => void;

/**
 * The only way for data from a sandbox, a model, a service or a caller to reach code of Offsite. If `handle`
 * throws or rejects, the error goes to `end`, and never reaches the event loop, where it would end the
 * process.
 */
export function guarded<Given extends unknown[]>(
  handle: (...given: Given) => unknown,
  end: EndTraffic,
): (...given: Given) => void {
  const endSafely = (error: unknown) => {
    try {
      end(error);
    } catch {
      // It has already ended.
    }
  };
  return (...given) => {
    try {
      const result = handle(...given);
      if (result instanceof Promise) result.catch(endSafely);
    } catch (error) {
      endSafely(error);
    }
  };
}

type Handlers = Readonly<Record<string, (...given: never[]) => unknown>>;

/**
 * Listens to a source of traffic from outside, with each handler {@link guarded}. Always listens to 'error',
 * so that no error ends the process. Without a handler for it, the source's 'close' must be enough to handle
 * the failure.
 */
export function listenTo<Source extends EventEmitter>(
  source: Source,
  handlers: Handlers,
  end: EndTraffic,
): Source {
  if (!Object.hasOwn(handlers, 'error')) source.on('error', () => undefined);
  for (const [event, handle] of Object.entries(handlers))
    source.on(event, guarded(handle as (...given: unknown[]) => unknown, end));
  return source;
}

/**
 * Whether the hostname of a `URL` is this machine, by name or number. (`URL` already normalizes numbers:
 * 127.1 is 127.0.0.1 here.)
 */
export function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost' || hostname === '[::1]') return true;
  return isIPv4(hostname) && hostname.startsWith('127.');
}
