import { standingOf } from '../../record/failures.ts';
import type { ModelExchange } from '../../record/model-account.ts';
import { commandsOf, type TimelineEntry } from '../../record/timeline.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { cost, count, duration, size } from '../../text/quantities.ts';
import { valueAt } from './cut-record.ts';

/** What there is to see of an entry of the timeline. */
export interface EntryDetails {
  /** Numbers and short texts. */
  figures: { label: string; value: string }[];
  /** Texts of the record, with the place of each as a JSON pointer. */
  texts: { label: string; pointer: string }[];
  /** Kept contents, such as the body of a request. */
  blobs: { label: string; sha256: string }[];
}

/** The same, with what the record may not have. */
interface Wanted {
  figures?: [label: string, value: string | number | undefined][];
  texts?: [label: string, pointer: string][];
  blobs?: [label: string, sha256: string | undefined][];
}

/** An entry's name in URLs. */
export function entryName({ kind, index }: Pick<TimelineEntry, 'kind' | 'index'>): string {
  return `${kind}.${index}`;
}

type Entry = Pick<TimelineEntry, 'kind' | 'index' | 'failed'>;

export function entryDetails(record: TrialRecord, entry: Entry): EntryDetails {
  const { figures = [], texts = [], blobs = [] } = wantedOf(record, entry);
  return {
    figures: figures.flatMap(([label, value]) =>
      value === undefined ? [] : { label, value: String(value) },
    ),
    texts: texts
      .filter(([, pointer]) => ![undefined, ''].includes(valueAt(record, pointer) as undefined))
      .map(([label, pointer]) => ({ label, pointer })),
    blobs: blobs.flatMap(([label, sha256]) => (sha256 === undefined ? [] : { label, sha256 })),
  };
}

function wantedOf(record: TrialRecord, { kind, index, failed }: Entry): Wanted {
  switch (kind) {
    case 'phase':
      return phaseDetails(record, index, failed);
    case 'command': {
      const list = commandsOf(record) === record.trajectory ? 'trajectory' : 'derivedTrajectory';
      return commandDetails(`/${list}/${index}`, record[list]?.[index], 'shortened by the harness');
    }
    case 'verify':
      return commandDetails(
        `/verifySteps/${index}`,
        record.verifySteps?.[index],
        'its beginning and its end',
      );
    case 'validation':
      return validationDetails(record, index);
    case 'exchange': {
      const exchange = record.models?.exchanges[index];
      return exchange ? exchangeDetails(exchange, `/models/exchanges/${index}`) : {};
    }
    case 'connection': {
      const { sentBytes, receivedBytes } = record.models?.connections[index] ?? {};
      return {
        figures: [
          ['Sent', known(sentBytes, size)],
          ['Received', known(receivedBytes, size)],
        ],
        texts: [['Failure', `/models/connections/${index}/failure`]],
      };
    }
    default:
      return {
        texts: ['Input', 'Output', 'Text'].map((label) => [label, `/events/${index}/${label.toLowerCase()}`]),
      };
  }
}

function phaseDetails(record: TrialRecord, index: number, failed: boolean): Wanted {
  const { name, step } = record.phases[index] ?? {};
  const place = record.steps?.findIndex((one) => one.name === step) ?? -1;
  const at = place === -1 ? '' : `/steps/${place}`;
  const { harness } = record.steps?.[place] ?? record;
  const isHarness = name === 'harness';
  return {
    figures: isHarness ? [['Ended', harness?.ended]] : [],
    texts: [
      ...pairs(failed, ['Failure', `${at}/cause/message`], ['Output', `${at}/cause/output`]),
      ...pairs(isHarness, ['Prompt', '/subject/prompt'], ['Output of the harness', '/harnessOutput']),
    ],
  };
}

function pairs(areWanted: boolean, ...all: [string, string][]): [string, string][] {
  return areWanted ? all : [];
}

function commandDetails(
  at: string,
  command: { exitCode?: number | undefined; outputTruncated?: boolean | undefined } | undefined,
  cut: string,
): Wanted {
  return {
    figures: [['Exit code', command?.exitCode]],
    texts: [
      ['Command', `${at}/command`],
      [command?.outputTruncated ? `Output, ${cut}` : 'Output', `${at}/output`],
    ],
  };
}

function validationDetails({ validations, judgments }: TrialRecord, index: number): Wanted {
  const validation = validations?.[index];
  if (!validation) return {};
  const at = `/validations/${index}`;
  const { calls = [], logs = [], judgment, message } = validation;
  // An error's text begins with its message.
  const isSaid = message !== undefined && validation.error?.text.includes(message.trim()) === true;
  return {
    figures: [
      ['Status', standingOf(validation, judgments)],
      ['Score', judgment?.score],
      ['Threshold', judgment?.threshold],
      ['Choice', judgment?.choice],
      ['Judge', judgment?.model],
    ],
    texts: [
      ...pairs(!isSaid, ['Message', `${at}/message`]),
      ['Reason', `${at}/judgment/reason`],
      ['Error', `${at}/error/text`],
      ['Input', `${at}/input/text`],
      ['Output', `${at}/output/text`],
      ...calls.flatMap((_, call) =>
        ['input', 'output', 'error'].map((part): [string, string] => [
          `Call ${call + 1}: ${part}`,
          `${at}/calls/${call}/${part}/text`,
        ]),
      ),
      ...logs.map(({ level }, log): [string, string] => [
        level === 'stderr' ? 'Log (stderr)' : 'Log',
        `${at}/logs/${log}/value/text`,
      ]),
      ['Metadata', `${at}/metadata/text`],
    ],
  };
}

function exchangeDetails(exchange: ModelExchange, at: string): Wanted {
  const { usage, startedAt, firstByteAt, translation, replayed, losses = [] } = exchange;
  return {
    figures: [
      ['Role', exchange.role],
      ['Model', exchange.model],
      ['Answered by', exchange.answeredBy],
      ['Status', exchange.status],
      ['Input', known(usage.inputTokens, tokens)],
      ['Output', known(usage.outputTokens, tokens)],
      ['Read from cache', known(usage.cacheReadTokens, tokens)],
      ['Written to cache', known(usage.cacheWriteTokens, tokens)],
      ['Cost', known(usage.costUsd, cost)],
      ['First byte after', known(firstByteAt, (first) => duration(first - startedAt))],
      ['Request', size(exchange.requestBytes)],
      ['Response', size(exchange.responseBytes)],
      ['Wire', exchange.wire],
      ['Path', exchange.path],
      ['Translated from', translation?.from],
      ['Replayed from', replayed && `${replayed.of}: ${replayed.trial}, request ${replayed.number}`],
      ['Matched', replayed && [replayed.how, ...(replayed.differs ?? [])].join(', ')],
      ...[...(translation?.losses ?? []), ...losses].map(({ path, kind }): [string, string] => [
        `Left out: ${kind}`,
        path,
      ]),
    ],
    texts: [
      ['Failure', `${at}/failure`],
      ...exchange.failedTries.map((_, index): [string, string] => [
        `Failed try ${index + 1}`,
        `${at}/failedTries/${index}/reason`,
      ]),
    ],
    blobs: [
      ['Request', exchange.requestBody],
      ['Response', exchange.responseBody],
    ],
  };
}

const tokens = (number: number) => `${count(number)} tokens`;

function known<Value>(value: Value | undefined, shown: (value: Value) => string): string | undefined {
  return value === undefined ? undefined : shown(value);
}
