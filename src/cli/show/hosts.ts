import type { HostConnection } from '../../record/model-account.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { ours, type Printable, text, type Value } from '../../text/printable.ts';
import { plural, size } from '../../text/quantities.ts';
import { section } from './layout.ts';
import { afterStart } from './timeline.ts';

/** The hosts that the agent and the tests could reach by name, and how often they did. Nothing if none. */
export function hostLines({ subject, models, testsConnections }: TrialRecord): Value[] {
  const { hosts = [], testsHosts = [] } = subject ?? {};
  return [
    ...reached('hosts   ', hosts, models?.connections),
    ...reached('tests at', testsHosts, testsConnections),
  ];
}

/** How many hosts a line names. */
const namedHosts = 8;

function reached(
  title: string,
  hosts: readonly string[],
  connections: readonly HostConnection[] = [],
): Value[] {
  if (hosts.length === 0 && connections.length === 0) return [];
  const more = hosts.length - namedHosts;
  const named = [...hosts.slice(0, namedHosts), ...(more > 0 ? [`${more} more`] : [])];
  const names = hosts.length === 0 ? 'no host' : named.join(', ');
  const failed = connections.filter(({ failure }) => failure !== undefined).length;
  const counted = [plural(connections.length, 'connection'), ...(failed > 0 ? [`${failed} failed`] : [])];
  return [text`${ours(title)} ${names}: ${ours(counted.join(', '))}`];
}

/** Each connection of the agent and of the tests to a host; nothing if there was none. */
export function connectionSections({ models, testsConnections = [], startedAt }: TrialRecord): Printable[] {
  const { connections = [] } = models ?? {};
  return [
    ...listed('hosts', connections, startedAt),
    ...listed('hosts of the tests', testsConnections, startedAt),
  ];
}

function listed(title: string, connections: readonly HostConnection[], start: number): Printable[] {
  if (connections.length === 0) return [];
  const lines = connections.map(({ host, port, startedAt, sentBytes, receivedBytes, failure }) => {
    const bytes = `${size(sentBytes)} sent, ${size(receivedBytes)} received`;
    return text`${afterStart(startedAt, start)} ${host}:${port}  ${ours(bytes)}  ${failure ?? ''}`;
  });
  return [section(title, plural(connections.length, 'connection'), lines)];
}
