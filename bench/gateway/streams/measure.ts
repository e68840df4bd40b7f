import { type Wire, wires } from '../../../src/suite/model-config.ts';
import { median, printTable, twoDigits } from '../../table.ts';
import { clientIn } from '../clients.ts';
import type { GatewayPlace } from '../place.ts';
import { type ProcessChange, watchProcess } from './process-watch.ts';
import { type Asked, requestOf } from './requests.ts';
import type { StreamOrder, StreamTimes } from './stream-order.ts';

/** One way of a stream: its client's wire, its model's wire, and whether it passes the gateway. */
interface Way {
  client: Wire;
  model: Wire;
  by: 'direct' | 'untranslated' | 'translated';
}

/** What was measured of one way. Megabytes (10^6) are those of the model's stream. */
export interface StreamRow extends Way {
  firstByteP50Ms: number;
  /** Compared with the direct way of the same model. */
  addedFirstByteMs: number;
  /** Of a stream of words, an event for each, as models write. */
  wordsMegabytesPerSecond: number;
  /** Of a stream with 1 KiB of text in an event. */
  piecesMegabytesPerSecond: number;
  /** Of this process, for each megabyte of words. Other load on the machine changes this value the least. */
  cpuMsPerMegabyte: number;
  /** Resident memory of this process while the words pass, in megabytes: see {@link ProcessChange}. */
  memoryMegabytes: number;
  memoryGrowthMegabytes: number;
}

export interface StreamWork {
  rounds: number;
  shortStreams: number;
  longBytes: number;
}

const ways: readonly Way[] = wires.flatMap((model): Way[] => [
  { client: model, model, by: 'direct' },
  ...wires.map((client): Way => ({ client, model, by: client === model ? 'untranslated' : 'translated' })),
]);

/**
 * With the wire `openai-responses`, the end of a text repeats all of it. The gateway keeps a text up to a
 * bound.
 */
const longestKept = 8_000_000;

/** The configuration of a model of each wire at this server. Each is named as its wire. */
export function modelsAt(url: string): Record<Wire, object> {
  const modelOf = (wire: Wire) => ({ wire, baseUrl: `${url}/${wire === 'gemini' ? 'v1beta' : 'v1'}` });
  return Object.fromEntries(wires.map((wire) => [wire, modelOf(wire)])) as Record<Wire, object>;
}

/** Measures all ways, which alternate in each round. The place has the models of {@link modelsAt}. */
export async function measureStreams(
  place: GatewayPlace,
  url: string,
  { rounds, shortStreams, longBytes }: StreamWork,
): Promise<StreamRow[]> {
  const client = clientIn<StreamOrder[], StreamTimes[]>('streams/stream-client.ts');
  await client.put(place.sandbox);
  const read = async (way: Way, asked: Asked, count: number): Promise<StreamTimes> => {
    const isDirect = way.by === 'direct';
    const { origin, token } = isDirect ? { origin: url, token: 'none' } : place;
    // The first answer compiles and connects.
    const warming: Asked = { stream: 'short' };
    const order = (of: Asked, count: number) => ({
      ...requestOf(way.client, way.model, of),
      origin,
      token,
      count,
    });
    const orders = [order(warming, 5), order(asked, count)];
    const [, times] = await (isDirect ? client.onHost(orders) : client.inSandbox(place.sandbox, orders));
    if (!times) throw new Error('the client measured nothing');
    return times;
  };

  const found = ways.map((way) => ({ way, ...nothingYet() }));
  for (let round = 0; round < rounds; round++) {
    for (const { way, firstByteMs, words, pieces, changes } of found) {
      firstByteMs.push(...(await read(way, { stream: 'short' }, shortStreams)).firstByteMs);
      const long = async (characters: number, bytes: number) => {
        const { endMs } = await read(way, { stream: 'long', characters, bytes }, 1);
        return bytes / 1000 / (endMs[0] ?? Number.NaN);
      };
      changes.push(await watchProcess(async () => words.push(await long(5, longBytes))));
      const isKept = way.by === 'translated' && way.client === 'openai-responses';
      pieces.push(await long(1024, isKept ? Math.min(longBytes, longestKept) : longBytes));
    }
  }
  const failed = (await place.session.account()).exchanges.find(({ failure }) => failure !== undefined);
  if (failed) throw new Error(`an exchange failed: ${failed.failure}`);

  const floorOf = (model: Wire) => found.find(({ way }) => way.by === 'direct' && way.model === model);
  return found.map(({ way, firstByteMs, words, pieces, changes }) => {
    const firstByteP50Ms = median(firstByteMs);
    return {
      ...way,
      firstByteP50Ms,
      addedFirstByteMs: firstByteP50Ms - median(floorOf(way.model)?.firstByteMs ?? []),
      wordsMegabytesPerSecond: median(words),
      piecesMegabytesPerSecond: median(pieces),
      cpuMsPerMegabyte: median(changes.map(({ cpuMs }) => cpuMs)) / (longBytes / 1e6),
      memoryMegabytes: median(changes.map(({ most }) => most)),
      memoryGrowthMegabytes: median(changes.map(({ growth }) => growth)),
    };
  });
}

/** One line a way; the goal is for pieces that are translated. */
export function printStreams(rows: readonly StreamRow[]): void {
  const goal = 35;
  printTable(
    rows.map(({ client, model, by, ...row }) => ({
      '': by === 'translated' ? `${client} from ${model}` : `${client}, ${by}`,
      'first byte ms': twoDigits(row.firstByteP50Ms),
      added: by === 'direct' ? '' : twoDigits(row.addedFirstByteMs),
      'words MB/s': twoDigits(row.wordsMegabytesPerSecond),
      'pieces MB/s': twoDigits(row.piecesMegabytesPerSecond),
      goal: by === 'translated' ? `at least ${goal}` : '',
      'processor ms/MB': twoDigits(row.cpuMsPerMegabyte),
      'memory MB': twoDigits(row.memoryMegabytes),
    })),
  );
}

function nothingYet() {
  return {
    firstByteMs: [] as number[],
    words: [] as number[],
    pieces: [] as number[],
    changes: [] as ProcessChange[],
  };
}
