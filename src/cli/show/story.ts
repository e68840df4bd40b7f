import type { StoredBatch, StoredRun } from '../../ledger/batches.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { AuditMark, LaterGrading, TrialAudit } from '../../record/audit.ts';
import type { ServiceRecord } from '../../record/environment.ts';
import { failuresOf } from '../../record/failures.ts';
import { oneLine } from '../../record/listing.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import {
  excerpt,
  joined,
  lines,
  type Optional,
  ours,
  type Printable,
  present,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { duration, minute, plural, size } from '../../text/quantities.ts';
import type { TrialDetails } from '../output/summary.ts';
import { changesSection, type ReadText } from './changes.ts';
import { checkSections, gradingsSection, stepsSection } from './checks.ts';
import { dim, firstOf, inStory, mark, page, section, trialName } from './layout.ts';
import { hostLines, modelSection, usageSection } from './models.ts';
import { timelineSection, transcriptSection } from './timeline.ts';

/** The parts of a trial that can be seen whole. */
export const parts = ['verify', 'diff', 'transcript', 'model'] as const;
export type Part = (typeof parts)[number];

/** A finished trial, as it is shown. */
export interface ShownTrial {
  batch: StoredBatch;
  run: StoredRun;
  trial: StoredTrial;
  record: TrialRecord;
  details: Pick<TrialDetails, 'artifacts' | 'attempts' | 'record'>;
  /** Later gradings, oldest first. */
  gradings: LaterGrading[];
  audit: (TrialAudit & AuditMark) | undefined;
  /** How to name the trial in further commands. */
  words: string;
  read: ReadText;
}

/** What happened in a trial, in two or three screens: first why it did not pass, then its evidence. */
export function storyOf(shown: ShownTrial): Printable {
  const { record, read } = shown;
  return page([
    headOf(shown),
    shown.trial.report === 'superseded' ? ours(notCounted) : undefined,
    whySection(record),
    stepsSection(record),
    gradingsSection(record.verdict, shown.gradings),
    auditSection(shown),
    ...checkSections(record, false),
    changesSection(record, read, false),
    outsideSection(record, false),
    triedSection(shown),
    subjectPrompt(record),
    timelineSection(record),
    attemptsSection(shown),
    artifactsSection(shown),
    usageSection(record),
    moreSection(shown),
  ]);
}

const notCounted =
  'This result does not count: the service has another one of this trial. `offsite service runs BATCH` shows that one.';

/** How far the last audit got, and what it contradicts. */
function auditSection({ audit }: ShownTrial): Printable | undefined {
  if (!audit) return undefined;
  const found = audit.levels.flatMap(({ contradictions }) => contradictions);
  const lineOf = ({ path, expected, found }: (typeof audit.levels)[number]['contradictions'][number]) =>
    text`${path}: expected ${expected}, found ${found}`;
  return section(
    'audited',
    `${audit.standing}, ${minute(audit.at)}`,
    firstOf(found, contradictionsShown, lineOf),
  );
}

/** How many contradictions a story shows. */
const contradictionsShown = 4;

/** Parts of a trial, whole. */
export function partsOf(shown: ShownTrial, wanted: readonly Part[]): Printable {
  const { record, read } = shown;
  const whole: Record<Part, () => (Printable | undefined)[]> = {
    verify: () => checkSections(record, true),
    diff: () => [changesSection(record, read, true), outsideSection(record, true)],
    transcript: () => [transcriptSection(record, read)],
    model: () => [modelSection(record)],
  };
  const found = wanted.flatMap((part) => {
    const sections = whole[part]().filter((one) => one !== undefined);
    return sections.length > 0 ? sections : [text`${ours(nothing[part])}`];
  });
  return page([headOf(shown), ...found]);
}

const nothing: Record<Part, string> = {
  verify: 'nothing was verified, validated or judged',
  diff: 'no file changed',
  transcript: 'nothing was recorded of the harness',
  model: 'no model was asked',
};

function headOf({ run, trial, record }: ShownTrial): Printable {
  const { verdict, startedAt, finishedAt, fromService } = record;
  const style = verdict === 'passed' ? 'green' : verdict === 'failed' ? 'red' : 'yellow';
  const name = trialName({ ...run, ordinal: trial.ordinal });
  const when = fromService ? 'from the service' : `${duration(finishedAt - startedAt)}, ${minute(startedAt)}`;
  return text`${mark(verdict)} ${styled('bold', name)}  ${styled(style, ours(verdict))}  ${styled('dim', ours(when))}`;
}

/** How many lines of the prompt a story shows. */
const promptSize = { first: 4, last: 1, characters: 160 };

function triedSection({ batch, run, record }: ShownTrial): Printable {
  const { subject, harnessVersion, imageId, turns, source, workspace, services = [] } = record;
  const { sandboxLacks = [], mappedImages = [], images = [], deviations = [] } = record;
  const harness = subject
    ? present([
        text`: ${subject.harness}${harnessVersion === undefined ? '' : text` ${harnessVersion}`}`,
        subject.profile !== undefined && text`profile ${subject.profile}`,
        text`model ${subject.model}`,
      ])
    : [];
  const image = imageId === undefined ? '' : text` (${imageId.replace(/^sha256:/, '').slice(0, 12)})`;
  const within = workspace === undefined ? '' : text`, workspace ${workspace}`;
  return section('tried', '', [
    text`case     ${run.caseId}${run.caseName === run.caseId ? '' : text`, ${run.caseName}`}`,
    text`variant  ${run.variant}${joined(harness, ', ')}`,
    subject && text`sandbox  ${subject.image}${image}, network ${subject.network}${within}`,
    ...images.map(
      ({ name, digest }) => digest !== undefined && digest !== '' && text`         ${name}@${digest}`,
    ),
    ...mappedImages.map(({ name, usedInstead }) => text`         ${usedInstead} in place of ${name}`),
    record.engine !== undefined && text`engine   ${record.engine}`,
    source &&
      text`source   ${[...new Set([source.commit, source.ref ?? 'HEAD'])].join(', ')} of ${source.url}`,
    subject?.tellDeadline && ours('given    how much time and budget it had left'),
    ...sandboxLacks.map((lack) => text`         without ${lack}`),
    ...hostLines(record),
    ...services.map(serviceLine),
    record.startUp && text`started  ${record.startUp.join(' ')}`,
    ...deviations.map((deviation) => text`differs  ${deviation}`),
    turns !== undefined && turns > 1 && text`turns    ${turns}`,
    text`suite    ${batch.suite}`,
  ]);
}

function serviceLine({ name, image, healthyAfterMs, exitCode, outOfDisk }: ServiceRecord): Printable {
  const facts = present([
    text`${image}`,
    healthyAfterMs !== undefined && ours(`healthy after ${duration(healthyAfterMs)}`),
    outOfDisk && ours('ended for writing more than it may'),
    exitCode !== undefined && ours(`exit ${exitCode}`),
  ]);
  return text`service  ${name}: ${joined(facts, ', ')}`;
}

function subjectPrompt({ subject }: TrialRecord): Printable | undefined {
  return subject && section('prompt', '', [excerpt(subject.prompt, promptSize)]);
}

/** The attempts, if there was more than one. */
function attemptsSection({ details: { attempts } }: ShownTrial): Printable | undefined {
  if (attempts.length < 2) return undefined;
  const lines = attempts.map(({ number, startedAt, endedAt, ending = 'in progress', cause }) => {
    const took = endedAt === undefined ? '' : ` after ${duration(endedAt - startedAt)}`;
    const why = cause
      ? text`: ${cause.kind ?? ''}, in ${cause.phase ?? ''}: ${cause.message?.split('\n')[0] ?? ''}`
      : ours('');
    return text`${number}  ${ending}${ours(took)}${why}`;
  });
  return section('attempts', String(attempts.length), lines);
}

function artifactsSection({ details: { artifacts }, record, words }: ShownTrial): Printable | undefined {
  if (artifacts.length === 0) return undefined;
  const omitted = record.artifactsOmittedCount ?? record.artifactsOmitted?.length ?? 0;
  return section('artifacts', String(artifacts.length), [
    ...firstOf(artifacts, 6, ({ path, byteSize }) => text`${path}  ${styled('dim', ours(size(byteSize)))}`),
    omitted > 0 && ours(`${plural(omitted, 'further file')} exceeded the limits`),
    styled('dim', text`offsite trial artifacts ${words} --out FOLDER`),
  ]);
}

function moreSection({ batch, run, details, record: { imageId, left }, words }: ShownTrial): Printable {
  return section('more', '', [
    text`whole    offsite show ${words} ${ours(parts.map((part) => `--${part}`).join(' | '))}`,
    imageId !== undefined && text`shell    offsite trial shell ${words}`,
    left?.kind === 'not-kept' && text`regrade  not possible: ${left.why}`,
    left && left.kind !== 'not-kept' && text`regrade  offsite trial regrade ${words}`,
    text`ids      ${batch.id}  ${run.id}`,
    text`record   ${details.record.path}`,
  ]);
}

/** How many reasons a story names before its evidence. */
const named = 3;

/** Why a trial did not pass; undefined if it passed. */
function whySection(record: TrialRecord): Printable | undefined {
  const body = present([...causeLines(record), ...firstOf(failuresOf(record), named, oneLine)]);
  return body.length === 0 ? undefined : section('why', '', body);
}

function causeLines({ cause, harness }: TrialRecord): Optional<Value>[] {
  if (!cause) return [];
  const { kind, phase, message, output = '' } = cause;
  return [
    text`${kind}, in ${phase}: ${lines(message)}`,
    harness?.ended === 'timed-out' && text`the harness was stopped after ${harness.afterMs} ms`,
    output.trim() !== '' && excerpt(output, inStory),
  ];
}

/** How many paths a story shows. */
const inStoryMost = 12;

/**
 * The unexpected changes outside the workspace, in the sandbox in which the work was graded.
 *
 * @param whole with all paths that the record has
 */
function outsideSection({ systemChanges }: TrialRecord, whole: boolean): Printable | undefined {
  const { unexpected, caches } = systemChanges ?? {};
  if (!unexpected || unexpected.count + (caches?.count ?? 0) === 0) return undefined;
  const { paths, count } = unexpected;
  const most = whole ? Number.POSITIVE_INFINITY : inStoryMost;
  const spare = count - paths.length;
  return section('changed outside the workspace', String(count), [
    ...firstOf(paths, most, (path) => path),
    caches && dim(`and ${caches.count} in folders of temporary files, logs and caches`),
    spare > 0 && dim(`… and ${spare} more, whose names were not kept`),
  ]);
}
