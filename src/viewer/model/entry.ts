import { standingOf } from '../../record/failures.ts';
import type { ModelExchange } from '../../record/model-account.ts';
import { commandsOf, type TimelineEntry } from '../../record/timeline.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { shownValue } from './cut-record.ts';

/** A text of an entry. */
export interface EntryText {
  label: string;
  /** Its place in the record, as a JSON pointer. */
  pointer: string;
  text: string;
}

/** A number or a short text of an entry. */
export interface EntryFigure {
  label: string;
  value: number | string;
  unit?: 'milliseconds' | 'bytes' | 'dollars' | 'tokens' | undefined;
}

/** What there is to see of an entry of the timeline. */
export interface EntryDetails {
  figures: EntryFigure[];
  texts: EntryText[];
  /** Kept contents, such as the body of a request. */
  blobs: { label: string; sha256: string }[];
}

/** An entry's name in URLs. */
export function entryName({ kind, index }: Pick<TimelineEntry, 'kind' | 'index'>): string {
  return `${kind}.${index}`;
}

export function entryDetails(record: TrialRecord, entry: TimelineEntry): EntryDetails {
  const { kind, index } = entry;
  switch (kind) {
    case 'phase':
      return phaseDetails(record, entry);
    case 'command': {
      const command = commandsOf(record)?.[index];
      const list = commandsOf(record) === record.trajectory ? 'trajectory' : 'derivedTrajectory';
      const at = `/${list}/${index}`;
      return details(
        [figure('Exit code', command?.exitCode)],
        [
          text('Command', `${at}/command`, command?.command),
          text(
            command?.outputTruncated ? 'Output, shortened by the harness' : 'Output',
            `${at}/output`,
            command?.output,
          ),
        ],
      );
    }
    case 'verify': {
      const step = record.verifySteps?.[index];
      const at = `/verifySteps/${index}`;
      return details(
        [figure('Exit code', step?.exitCode)],
        [
          text('Command', `${at}/command`, step?.command),
          text(
            step?.outputTruncated ? 'Output, its beginning and its end' : 'Output',
            `${at}/output`,
            step?.output,
          ),
        ],
      );
    }
    case 'validation':
      return validationDetails(record, index);
    case 'exchange': {
      const exchange = record.models?.exchanges[index];
      return exchange ? exchangeDetails(exchange, index) : details([], []);
    }
    case 'connection': {
      const { sentBytes, receivedBytes, failure } = record.models?.connections[index] ?? {};
      return details(
        [figure('Sent', sentBytes, 'bytes'), figure('Received', receivedBytes, 'bytes')],
        [text('Failure', `/models/connections/${index}/failure`, failure)],
      );
    }
    case 'tool': {
      const event = record.events?.[index];
      if (event?.kind !== 'tool') return details([], []);
      const input = event.input === undefined ? undefined : shownValue(event.input);
      return details(
        [],
        [
          text('Input', `/events/${index}/input`, input),
          text('Output', `/events/${index}/output`, event.output),
        ],
      );
    }
    default: {
      const event = record.events?.[index];
      return details(
        [],
        [text('Text', `/events/${index}/text`, event && 'text' in event ? event.text : undefined)],
      );
    }
  }
}

function phaseDetails(record: TrialRecord, { index, failed }: TimelineEntry) {
  const { phases, steps = [], harnessOutput, subject } = record;
  const phase = phases[index];
  const isHarness = phase?.name === 'harness';
  const step = steps.findIndex(({ name }) => name === phase?.step);
  const { cause, harness } = steps[step] ?? record;
  const at = step === -1 ? '/cause' : `/steps/${step}/cause`;
  return details(isHarness && harness ? [figure('Ended', harness.ended)] : [], [
    text('Failure', `${at}/message`, failed ? cause?.message : undefined),
    text('Output', `${at}/output`, failed ? cause?.output : undefined),
    text('Prompt', '/subject/prompt', isHarness ? subject?.prompt : undefined),
    text('Output of the harness', '/harnessOutput', isHarness ? harnessOutput : undefined),
  ]);
}

function validationDetails({ validations, judgments }: TrialRecord, index: number): EntryDetails {
  const validation = validations?.[index];
  if (!validation) return details([], []);
  const at = `/validations/${index}`;
  const captured = (label: string, name: 'input' | 'output' | 'error' | 'metadata') =>
    text(label, `${at}/${name}/text`, validation[name]?.text);
  const { calls = [], logs = [], judgment, message } = validation;
  // An error's text begins with its message.
  const isSaid = message !== undefined && validation.error?.text.includes(message.trim());
  const callTexts = calls.flatMap((call, position) => [
    text(`Call ${position + 1}: input`, `${at}/calls/${position}/input/text`, call.input?.text),
    text(`Call ${position + 1}: output`, `${at}/calls/${position}/output/text`, call.output?.text),
    text(`Call ${position + 1}: error`, `${at}/calls/${position}/error/text`, call.error?.text),
  ]);
  const logTexts = logs.map((log, position) =>
    text(
      log.level === 'stderr' ? 'Log (stderr)' : 'Log',
      `${at}/logs/${position}/value/text`,
      log.value?.text,
    ),
  );
  return details(
    [
      figure('Status', standingOf(validation, judgments)),
      figure('Score', judgment?.score),
      figure('Threshold', judgment?.threshold),
      figure('Choice', judgment?.choice),
      figure('Judge', judgment?.model),
    ],
    [
      text('Message', `${at}/message`, isSaid ? undefined : message),
      text('Reason', `${at}/judgment/reason`, judgment?.reason),
      captured('Error', 'error'),
      captured('Input', 'input'),
      captured('Output', 'output'),
      ...callTexts,
      ...logTexts,
      captured('Metadata', 'metadata'),
    ],
  );
}

function exchangeDetails(exchange: ModelExchange, index: number): EntryDetails {
  const { usage, startedAt, firstByteAt, failedTries, requestBody, responseBody, replayed } = exchange;
  const figures = [
    figure('Role', exchange.role),
    figure('Model', exchange.model),
    figure('Answered by', exchange.answeredBy),
    figure('Status', exchange.status),
    figure('Input', usage.inputTokens, 'tokens'),
    figure('Output', usage.outputTokens, 'tokens'),
    figure('Read from cache', usage.cacheReadTokens, 'tokens'),
    figure('Written to cache', usage.cacheWriteTokens, 'tokens'),
    figure('Cost', usage.costUsd, 'dollars'),
    figure(
      'First byte after',
      firstByteAt === undefined ? undefined : firstByteAt - startedAt,
      'milliseconds',
    ),
    figure('Request', exchange.requestBytes, 'bytes'),
    figure('Response', exchange.responseBytes, 'bytes'),
    figure('Wire', exchange.wire),
    figure('Path', exchange.path),
    figure('Translated from', exchange.translation?.from),
    figure('Replayed from', replayed && `${replayed.of}: ${replayed.trial}, request ${replayed.number}`),
    figure('Matched', replayed && [replayed.how, ...(replayed.differs ?? [])].join(', ')),
    ...[...(exchange.translation?.losses ?? []), ...(exchange.losses ?? [])].map(({ path, kind }) =>
      figure(`Left out: ${kind}`, path),
    ),
  ];
  const tries = failedTries.map(({ reason }, position) =>
    text(`Failed try ${position + 1}`, `/models/exchanges/${index}/failedTries/${position}/reason`, reason),
  );
  return {
    ...details(figures, [text('Failure', `/models/exchanges/${index}/failure`, exchange.failure), ...tries]),
    blobs: [
      ...(requestBody ? [{ label: 'Request', sha256: requestBody }] : []),
      ...(responseBody ? [{ label: 'Response', sha256: responseBody }] : []),
    ],
  };
}

function details(figures: (EntryFigure | undefined)[], texts: (EntryText | undefined)[]): EntryDetails {
  return {
    figures: figures.filter((each) => each !== undefined),
    texts: texts.filter((each) => each !== undefined),
    blobs: [],
  };
}

function figure(label: string, value: number | string | undefined, unit?: EntryFigure['unit']) {
  return value === undefined ? undefined : { label, value, unit };
}

function text(label: string, pointer: string, value: string | undefined): EntryText | undefined {
  return value === undefined || value === '' ? undefined : { label, pointer, text: value };
}
