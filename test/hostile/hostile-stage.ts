import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { stringify } from 'yaml';
import { type FlakyService, openFlakyService } from '../cli/flaky-service.ts';
import { type Ended, offsite } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { hostileService, hostileSocket, type Party, refusingParty } from './hostile-parties.ts';
import { hostileSuite } from './hostile-place.ts';
import { hostileName, hostileText } from './hostile-text.ts';

// What the tests of a file have that calls {@link hostileStage}.
export let place: Place;
export let flaky: FlakyService;
export let suite: string;
export let ran: Ended;
export let kind: Party;
export let refusing: Party;
let lengthy: Party;
export let model: Party;
const parties: AsyncDisposable[] = [];

/** Opens a place, services and a model that say hostile things, and runs a hostile suite there. */
export function hostileStage(): void {
  beforeAll(async () => {
    place = openPlace();
    flaky = await openFlakyService(place);
    kind = await hostileService();
    refusing = await hostileService('all');
    lengthy = await hostileService('at-length');
    model = await refusingParty();
    parties.push(flaky, kind, refusing, lengthy, model);
    suite = hostileSuite(place, model);
    flaky.down.add('evals.reportTrial');
    flaky.alter = (operation, body) =>
      operation === 'evals.reportTrial' ? JSON.stringify({ _tag: hostileText, message: hostileText }) : body;
    ran = await offsite(place, ['run', suite, '--json', '--junit', join(place.folder, 'junit.xml')], {
      env: { ...flaky.env, GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: join(place.folder, 'summary.md') },
    });
  });
  afterAll(async () => {
    for (const party of parties) await party[Symbol.asyncDispose]();
    place?.[Symbol.dispose]();
  });
}

export const at = ({ url }: Party) => ({ OFFSITE_URL: url, OFFSITE_API_KEY: 'key-for-tests' });
export const config = () => ['--config', join(place.folder, 'project', 'offsite.yaml')];

/** The command as it is, with JSON, and where the service refuses it. */
export async function asked(...args: string[]): Promise<Ended[]> {
  return Promise.all([
    offsite(place, args, { env: at(kind) }),
    offsite(place, [...args, '--json'], { env: at(kind) }),
    offsite(place, args, { env: at(refusing) }),
    offsite(place, args, { env: at(lengthy) }),
  ]);
}

/** With an engine that only says hostile things. */
export const badEngine = () => ({ DOCKER_HOST: `tcp://127.0.0.1:${model.port}` });

export async function answered(...args: string[]): Promise<Ended[]> {
  using own = openPlace();
  mkdirSync(own.dataFolder, { recursive: true });
  await using _socket = await hostileSocket(join(own.dataFolder, 'control.sock'));
  return [await offsite(own, args)];
}

type Options = Parameters<typeof offsite>[2];

/** Runs command lines one after the other. */
export async function inTurn(lines: string[][], options?: Options): Promise<Ended[]> {
  const ended: Ended[] = [];
  for (const line of lines) ended.push(await offsite(place, line, options));
  return ended;
}

export const plain = (...lines: string[][]) => inTurn(lines);
export const configured = (...lines: string[][]) => inTurn(lines.map((line) => [...line, ...config()]));

/** For commands that know no data folder. */
export const bare = (...lines: string[][]) => inTurn(lines, { dataFolder: null });
export const withBadEngine = (...lines: string[][]) => inTurn(lines, { dataFolder: null, env: badEngine() });

/**
 * Commands of the fleet that ask a server, or look for what is not there, about something with a hostile
 * name.
 */
export const fleetCommands = [
  ['status'],
  ...['attach', 'rerun', 'pull', 'pause', 'unpause', 'cancel'].map((name) => [name, hostileName]),
  ['run', hostileName],
  ['poll'],
  ['worker'],
  ['drain'],
];

let fleetEnded: Promise<Map<string | undefined, Ended>> | undefined;

/** All of them at once, since each waits for a server that says only hostile things. */
export function onFleet(): Promise<Map<string | undefined, Ended>> {
  const fleet = { address: `127.0.0.1:${model.port}`, storage: { folder: place.folder } };
  const file = place.write('fleet.yaml', stringify({ fleet, daemon: { suites: [hostileName] } }));
  fleetEnded ??= Promise.all(
    fleetCommands.map(async (args) => {
      const ended = await offsite(place, ['fleet', ...args, '--config', file], { env: at(kind) });
      return [args[0], ended] as const;
    }),
  ).then((all) => new Map(all));
  return fleetEnded;
}
