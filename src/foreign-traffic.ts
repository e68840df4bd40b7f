import type { EventEmitter } from 'node:events';

/**
 * Ends what foreign traffic belongs to, its connection or its session, and says why: `error` is something
 * that nobody expected, so a defect. It may be called again after the end.
 */
export type EndTraffic = (error: unknown) => void;

/**
 * The one way in which something that a sandbox, a model, a service or a caller sends enters code of ours.
 * What `handle` throws, or rejects with, goes to `end`: the event loop, where it would end the process, never
 * sees it.
 */
export function guarded<Given extends unknown[]>(
  handle: (...given: Given) => unknown,
  end: EndTraffic,
): (...given: Given) => void {
  const endSafely = (error: unknown) => {
    try {
      end(error);
    } catch {
      // It is over already.
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
 * Listens to a source of foreign traffic, each handler {@link guarded}. Its errors are always heard, so that
 * none ends the process; where no handler is given for them, the source's 'close' is expected to tell all
 * there is to know.
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
