import { abortable } from '../../base/abortable.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { Image, PullProgress } from '../port/images.ts';
import { loginFor } from './registry-login.ts';

/** Whether images that the engine does not have are pulled; `always` also asks for newer ones. */
export type PullPolicy = 'never' | 'missing' | 'always';

export interface ObtainOptions {
  signal?: AbortSignal | undefined;
  /** Called when a pull begins, and while it runs. */
  onPull?: ((progress: PullProgress) => void) | undefined;
}

export type ObtainImage = (name: string, options?: ObtainOptions) => Promise<Image | undefined>;

/** A pull that ended this recently, in milliseconds, is not tried again, whether it succeeded or not. */
const recentMs = 60_000;
/** Offsite makes these images itself; those that a registry has under such names are not Offsite's. */
const ours = /^offsite(-test)?\//;
const isId = /^(sha256:)?[0-9a-f]{64}$/;

interface Pull {
  /** When it ended; infinite while it runs. */
  endedAt: number;
  done: Promise<unknown>;
  /** Who waits for it. If all stop waiting, the pull stops. */
  waiting: Set<ObtainOptions>;
  stop(): void;
}

/**
 * Finds images, and pulls them as the policy says. Concurrent requests for an image wait for one pull. It
 * resolves with undefined for an image that is missing and must not be pulled. It throws `IMAGE_REFUSED`, of
 * kind `input`, if the registry says no, and `IMAGE_PULL_FAILED` if no registry gives the image. One round
 * trip for an image that the engine has, with any policy but `always`.
 */
export function imageSource(port: EnginePort, policy: PullPolicy, env: NodeJS.ProcessEnv): ObtainImage {
  const pulls = new Map<string, Pull>();

  function pull(name: string): Pull {
    const known = pulls.get(name);
    if (known && port.clock.now() - known.endedAt < recentMs) return known;
    const waiting: Pull['waiting'] = new Set();
    const stopping = new AbortController();
    const { signal } = stopping;
    const onProgress = (progress: PullProgress) => {
      for (const { onPull } of waiting) onPull?.(progress);
    };
    const work = async () => {
      const login = await loginFor(name, env);
      await port.images.pull(withTag(name), { login, onProgress, signal });
    };
    const started: Pull = {
      endedAt: Number.POSITIVE_INFINITY,
      done: work(),
      waiting,
      stop() {
        pulls.delete(name);
        stopping.abort();
      },
    };
    const end = () => {
      started.endedAt = port.clock.now();
    };
    started.done.then(end, end);
    pulls.set(name, started);
    return started;
  }

  return async (name, options = {}) => {
    const { signal, onPull } = options;
    const found = await port.images.find(name, signal);
    const mayPull = policy !== 'never' && !ours.test(name) && !isId.test(name);
    if (!mayPull || (found && policy === 'missing')) return found;
    const { done, waiting, stop } = pull(name);
    waiting.add(options);
    onPull?.({ bytes: 0, total: 0 });
    try {
      await abortable(done, signal);
    } catch (error) {
      // An older image is better than none.
      if (!found || signal?.aborted) throw error;
    } finally {
      waiting.delete(options);
      if (signal?.aborted && waiting.size === 0) stop();
    }
    return port.images.find(name, signal);
  };
}

/** Without a tag, the engine would pull all tags. */
function withTag(name: string): string {
  const last = name.slice(name.lastIndexOf('/') + 1);
  return /[:@]/.test(last) ? name : `${name}:latest`;
}

/** Why an image could not be pulled, without the prefix `Could not pull NAME: `. */
export function pullObstacle(thrown: unknown): string {
  return messageOf(thrown).replace(/^Could not pull \S+: /, '');
}

/** Whether a registry answered and said no, which another try would not change. */
export function isRefusal(thrown: unknown): boolean {
  return thrown instanceof OffsiteError && thrown.code === 'IMAGE_REFUSED';
}
