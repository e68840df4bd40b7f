import type Docker from 'dockerode';
import type { EngineClient } from './connection/engine-client.ts';
import { CREATED_LABEL, INSTANCE_LABEL, OWNED_LABEL, PARENT_LABEL, ROLE_LABEL } from './labels.ts';

/** Something on the engine that an agent made. */
export interface OwnedObject {
  kind: 'container' | 'network' | 'volume' | 'image';
  /** A volume's is its name. */
  id: string;
  name: string;
  /** The agent that made it; empty for what outlives agents. */
  instance: string;
  labels: Record<string, string>;
  /** Epoch milliseconds. */
  createdAt: number;
  /** A container's: `created`, `running`, `exited`, ... */
  state?: string;
}

/** The containers of all instances, those of none left out. One round trip. */
export async function ownedContainers(client: EngineClient, signal?: AbortSignal): Promise<OwnedObject[]> {
  return (await labelledContainers(client, OWNED_LABEL, signal)).filter(({ instance }) => instance !== '');
}

/** The containers of one instance. One round trip. */
export function containersOf(client: EngineClient, instance: string): Promise<OwnedObject[]> {
  return labelledContainers(client, `${INSTANCE_LABEL}=${instance}`);
}

async function labelledContainers(
  client: EngineClient,
  label: string,
  signal?: AbortSignal,
): Promise<OwnedObject[]> {
  const found = await list<Docker.ContainerInfo[]>(
    client,
    'containers',
    '/containers/json?all=true&',
    { label: [label] },
    signal,
  );
  return found.map(({ Id, Names, Labels, State, Created }) => ({
    kind: 'container',
    id: Id,
    name: Names?.[0]?.replace(/^\//, '') ?? '',
    ...ownership(Labels, Created * 1000),
    state: State,
  }));
}

/** The networks of all instances. One round trip. */
export async function ownedNetworks(client: EngineClient, signal?: AbortSignal): Promise<OwnedObject[]> {
  type Network = { Id: string; Name: string; Labels: Labels; Created: string };
  const filters = { label: [INSTANCE_LABEL] };
  const found = await list<Network[]>(client, 'networks', '/networks?', filters, signal);
  return found.map(({ Id, Name, Labels, Created }) => ({
    kind: 'network',
    id: Id,
    name: Name,
    ...ownership(Labels, Date.parse(Created)),
  }));
}

/** The volumes of all instances. One round trip. */
export async function ownedVolumes(client: EngineClient, signal?: AbortSignal): Promise<OwnedObject[]> {
  type Volume = { Name: string; Labels: Labels; CreatedAt?: string };
  const filters = { label: [INSTANCE_LABEL] };
  const found = await list<{ Volumes: Volume[] | null }>(client, 'volumes', '/volumes?', filters, signal);
  return (found.Volumes ?? []).map(({ Name, Labels, CreatedAt = '' }) => ({
    kind: 'volume',
    id: Name,
    name: Name,
    ...ownership(Labels, Date.parse(CreatedAt)),
  }));
}

/** Images of ours that have no name any more. One round trip. */
export async function namelessImages(client: EngineClient, signal?: AbortSignal): Promise<OwnedObject[]> {
  type Listed = { Id: string; ParentId: string; Labels: Labels; Created: number };
  const filters = { dangling: ['true'], label: [OWNED_LABEL, PARENT_LABEL, `${ROLE_LABEL}=snapshot`] };
  const found = await list<Listed[]>(client, 'images', '/images/json?', filters, signal);
  return (
    found
      // What somebody builds upon a snapshot inherits its labels, but has the snapshot itself for a parent.
      .filter(({ ParentId, Labels }) => ParentId === '' || ParentId === Labels?.[PARENT_LABEL])
      .map(({ Id, Labels, Created }) => ({
        kind: 'image',
        id: Id,
        name: '',
        ...ownership(Labels, Created * 1000),
      }))
  );
}

type Labels = Record<string, string> | null;

function ownership(labels: Labels, engineCreatedAt: number) {
  const created = labels?.[CREATED_LABEL];
  return {
    instance: labels?.[INSTANCE_LABEL] ?? '',
    labels: labels ?? {},
    createdAt: created === undefined ? engineCreatedAt : Number(created),
  };
}

function list<Answer>(
  client: EngineClient,
  what: string,
  path: string,
  filters: Record<string, string[]>,
  signal?: AbortSignal,
): Promise<Answer> {
  return client.call(
    `listing the ${what} of all instances`,
    (abortSignal) =>
      client.dial<Answer>({
        method: 'GET',
        path: `${path}filters=${encodeURIComponent(JSON.stringify(filters))}`,
        expected: [200],
        abortSignal,
      }),
    { signal },
  );
}
