import { engineAnswers } from '../../bounds/sandbox.ts';
import { readArchive } from '../archive/read.ts';
import type { DockerClient } from '../docker/client.ts';
import type { CommandColumn, EngineProcess } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';

/**
 * Podman reads `/proc` itself for these columns. For any other it would run the container's own `ps`, which
 * an agent may have replaced.
 */
export async function listProcesses(
  client: DockerClient,
  port: EnginePort,
  id: string,
  column: CommandColumn,
): Promise<EngineProcess[] | undefined> {
  const path = `/containers/${id}/top?ps_args=hpid,user,state,${column}&`;
  const answer = await client.ask<{ Processes?: string[][] }>('listing processes', { method: 'GET', path });
  // If Podman fails after it has sent the headers, there is no list.
  if (answer.Processes === undefined) return undefined;
  const users = answer.Processes.map(([, user = '']) => user);
  const ids = users.every(isNumber) ? new Map<string, number>() : await userIds(port, id);
  return answer.Processes.map(([pid, user = '', state = '', command = '']) => ({
    pid: Number(pid),
    uid: isNumber(user) ? Number(user) : (ids.get(user) ?? Number.NaN),
    state,
    command,
  }));
}

function isNumber(user: string): boolean {
  return /^\d+$/.test(user);
}

/**
 * Podman names users as the container's `/etc/passwd` does. If an agent has falsified that file, its
 * processes survive the kill by user, and a restart ends them.
 */
async function userIds(port: EnginePort, id: string): Promise<Map<string, number>> {
  const ids = new Map([['root', 0]]);
  for await (const entry of readArchive({ port, id }, '/etc/passwd', undefined, engineAnswers.bytes.users)) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry.content()) chunks.push(chunk);
    for (const line of Buffer.concat(chunks).toString().split('\n')) {
      const [name = '', , uid = ''] = line.split(':');
      if (!ids.has(name) && /^\d+$/.test(uid)) ids.set(name, Number(uid));
    }
  }
  return ids;
}
