import type { Container } from '../../engine/container.ts';

/**
 * The sandbox in which a validator's `run` starts programs.
 *
 * - `beside`: in the validator's own sandbox, as another user. `nobody`: the workspace is given to the user
 * nobody. `own`: in a sandbox without root, the work runs as the sandbox's own user, who owns the workspace
 * already.
 * - `apart`: in another sandbox, the one the agent worked in, as that sandbox's user.
 */
export type WorkSandbox =
  | { kind: 'beside'; container: Container; user: 'nobody' | { own: string } }
  | { kind: 'apart'; container: Container };
