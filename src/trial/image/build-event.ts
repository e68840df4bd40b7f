import type { Cause } from '../../record/cause.ts';

/** What happens to one step of an environment, an install or a prepare, that no snapshot exists of yet. */
export interface BuildEvent {
  /** The same for all events of a step, and for all trials that share it. */
  id: string;
  /** What is built, for people: `prepare of a`. Contains foreign text. */
  what: string;
  /** The image that cases name, if that is what failed. */
  image?: string | undefined;
  state: BuildState;
}

export type BuildState =
  /** Another agent builds it on the same engine, and its result is used. */
  | { kind: 'other-agent' }
  /** It waits, because the maximum number of builds runs. */
  | { kind: 'queued' }
  | { kind: 'running' }
  | { kind: 'built' }
  /** The script failed; all trials that need it are void for this cause. */
  | { kind: 'failed'; cause: Cause }
  /** Interrupted, or the engine failed: a later attempt may build it. */
  | { kind: 'stopped' };

/** The states of a build that has not ended. */
export type OpenBuildState = Extract<BuildState['kind'], 'running' | 'queued' | 'other-agent'>;

export function isOpen(state: BuildState): state is BuildState & { kind: OpenBuildState } {
  return state.kind === 'running' || state.kind === 'queued' || state.kind === 'other-agent';
}

export type ObserveBuild = (event: BuildEvent) => void;
