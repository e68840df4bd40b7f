import type { Container } from '../../engine/container.ts';

/**
 * Where a validator's `run` starts programs. `beside`: in the validator's own sandbox, as another user;
 * `nobody` is given the workspace, and a sandbox that has no root keeps its own user for the work, whose the
 * workspace is already. `apart`: in another sandbox, the one the agent worked in, as its own user.
 */
export type WorkSandbox =
  | { kind: 'beside'; container: Container; user: 'nobody' | { own: string } }
  | { kind: 'apart'; container: Container };
