import { commandOutput } from '../bounds/sandbox.ts';
import type { Container } from '../engine/container.ts';
import { printedBy } from '../engine/exec/exec-request.ts';
import { TrialFailure } from './failure.ts';
import type { TrialSpec } from './spec.ts';

/** A user of a sandbox. */
export interface SandboxUser {
  uid: number;
  gid: number;
  /** Absolute. */
  home: string;
}

/** The users that a trial's harness runs as, besides that of its sandbox, by their names in the case. */
export type AgentUsers = ReadonlyMap<string, SandboxUser>;

/**
 * Looks up the users of all steps of a trial. Call it before any harness runs: an agent may change the
 * sandbox's users. Throws a {@link TrialFailure} of kind `task` for a user that the sandbox does not have.
 */
export async function agentUsers(
  container: Container,
  { agent, steps }: TrialSpec,
  signal: AbortSignal,
): Promise<AgentUsers> {
  const names = [agent?.user, ...(steps?.list ?? []).map((step) => step.agent.user)];
  const users = new Map<string, SandboxUser>();
  for (const name of new Set(names))
    if (name !== undefined) users.set(name, await userOf(container, name, signal));
  return users;
}

async function userOf(container: Container, name: string, signal: AbortSignal): Promise<SandboxUser> {
  const result = await container.exec({
    argv: ['/bin/sh', '-c', userScript],
    cwd: '/',
    user: name,
    timeoutMs: commandOutput.time.userNames,
    signal,
  });
  signal.throwIfAborted();
  const [uid = '', gid = '', home = ''] = result.stdout.text.split('\n');
  if (result.ended === 'exited' && /^\d+$/.test(uid) && /^\d+$/.test(gid))
    return { uid: Number(uid), gid: Number(gid), home: home.startsWith('/') ? home : '/tmp' };
  const message = `the sandbox has no user ${JSON.stringify(name)}, as which the agent is to run`;
  throw new TrialFailure({ kind: 'task', phase: 'sandbox', message, output: printedBy(result, 'stderr') });
}

/** Prints ids and home of the user. Needs nothing but a shell and `id`. */
const userScript = `
me=$(id -u) && echo "$me" && id -g
while IFS=: read -r _ _ uid _ _ home _; do [ "$uid" = "$me" ] && echo "$home" && break; done < /etc/passwd`;

/**
 * The same container, in which commands run as a user, with its home in `HOME`, unless they say otherwise.
 */
export function asUser(container: Container, { uid, home }: SandboxUser): Container {
  const own = <Request extends { env?: Readonly<Record<string, string>> }>(request: Request) => ({
    user: String(uid),
    ...request,
    env: { HOME: home, ...request.env },
  });
  return {
    ...container,
    exec: (request) => container.exec(own(request)),
    runScript: (request) => container.runScript(own(request)),
  };
}
