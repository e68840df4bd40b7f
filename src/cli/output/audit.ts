import type { Committed } from '../../audit/committed.ts';
import { printedText } from '../../bounds/anyone.ts';
import type { ListedTrial } from '../../ledger/find.ts';
import {
  type AuditedLevel,
  type AuditLevel,
  auditLevels,
  auditStanding,
  type TrialAudit,
} from '../../record/audit.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';

/** What an audit of a batch found. */
export interface ShownAudit {
  batchId: string;
  /** The last level that was asked for. */
  level: AuditLevel;
  /** Who signed the file, and how far that can be trusted; undefined for a batch of the data folder. */
  signature: string | undefined;
  whole: Omit<AuditedLevel, 'level'>;
  trials: { trial: ListedTrial; audit: TrialAudit }[];
}

/** The JSON document. */
export function auditDocument(
  { trials, ...about }: ShownAudit,
  committed: (trial: ListedTrial) => Committed,
) {
  return {
    ...about,
    contradicted: contradictedCount({ trials, ...about }),
    trials: trials.map(({ trial, audit: { levels } }) => {
      const { runId, caseId, variant, ordinal, verdict } = trial;
      const standing = auditStanding({ levels });
      return { runId, caseId, variant, ordinal, verdict, standing, committed: committed(trial), levels };
    }),
  };
}

/** How many trials something contradicts; the batch as a whole counts as one more. */
export function contradictedCount({ whole, trials }: Pick<ShownAudit, 'whole' | 'trials'>): number {
  const own = trials.filter(({ audit }) => auditStanding(audit) === 'contradicted').length;
  return own + (whole.state === 'contradicted' ? 1 : 0);
}

/** How many trials reached the level that was asked for. */
export function reachedCount({ trials, level }: Pick<ShownAudit, 'trials' | 'level'>): number {
  const isHeld = (one: AuditedLevel) => one.level === level && one.state === 'held';
  return trials.filter(({ audit }) => audit.levels.some(isHeld)).length;
}

/** Who signed it, then each contradiction with its place, a row for each trial, and what was not checked. */
export function auditText(shown: ShownAudit): Printable {
  const { whole, trials, signature, level } = shown;
  // What needs no engine is always looked at.
  const last = Math.max(auditLevels.indexOf(level), auditLevels.indexOf('consistent'));
  const levels = auditLevels.slice(0, last + 1);
  const contradictions = [
    ...whole.contradictions.map((one) => ({ name: ours('the batch'), ...one })),
    ...trials.flatMap(({ trial, audit }) =>
      audit.levels.flatMap((one) => one.contradictions.map((found) => ({ name: nameOf(trial), ...found }))),
    ),
  ].map(({ name, path, says, expected, found }) =>
    stack([text`${name}: ${path}`, text`  not so: ${ours(says)}; expected ${expected}, found ${found}`]),
  );
  const held = reachedCount(shown);
  const next = held > 0 ? auditLevels[levels.length] : undefined;
  return stack([
    ...(signature === undefined ? [] : [text`${signature}`, ours('')]),
    ...firstOf(contradictions),
    ...(contradictions.length > 0 ? [ours('')] : []),
    tableOf(trials, levels),
    ours(''),
    ...firstOf(uncheckedLines(shown)),
    ours(
      `${contradictions.length === 0 ? 'nothing is contradicted' : `contradicted: ${plural(contradictions.length, 'place')}`}; ` +
        `${level}: ${held} of ${plural(trials.length, 'trial')}`,
    ),
    ...(next === undefined ? [] : [ours(`further: --level ${next}`)]),
    ...(held === 0 && contradictions.length === 0 ? [unreachedText(shown)] : []),
  ]);
}

/** Of no trial: on whose side that is. */
function unreachedText({ trials, level }: ShownAudit): Printable {
  const lacks = trials.flatMap(({ audit }) => audit.levels.flatMap((one) => one.lacks ?? []));
  const here = lacks.filter((one) => one === 'machine').length;
  const what = `no trial reached ${level}`;
  if (trials.length === 0) return ours(`${what}: none has a result`);
  if (here === 0) return ours(`${what}: the evidence lacks what that needs; its owner can say more`);
  if (here === lacks.length)
    return ours(`${what}: this machine lacks what that needs; the evidence may hold on another one`);
  return ours(`${what}: ${here} for a reason of this machine, the others for one of the evidence`);
}

/** Somebody else's evidence can contradict itself at any number of places. */
function firstOf(all: Printable[]): Printable[] {
  const more = all.length - printedText.count.lines;
  if (more <= 0) return all;
  return [...all.slice(0, printedText.count.lines), text`and ${more} more: --json lists all`];
}

/** Trials of a run with the same result take one row. */
function tableOf(trials: ShownAudit['trials'], levels: readonly AuditLevel[]): Printable {
  const stateOf = ({ audit }: ShownAudit['trials'][number], level: AuditLevel) =>
    audit.levels.find((one) => one.level === level)?.state ?? '–';
  const alike = Map.groupBy(trials, (one) =>
    JSON.stringify([one.trial.run, one.trial.verdict, ...levels.map((level) => stateOf(one, level))]),
  );
  const rows = [...alike.values()].flatMap((all) => {
    const [first] = all;
    if (!first) return [];
    const ordinals = all.map(({ trial }) => `#${trial.ordinal}`).join(' ');
    const { caseId, variant, verdict = 'none' } = first.trial;
    return [
      [
        text`${caseId} · ${variant} ${ordinals}`,
        ours(verdict),
        ...levels.map((level) => ours(stateOf(first, level))),
      ],
    ];
  });
  return table(['trial', 'verdict', ...levels], rows);
}

/** Each thing that could not be checked, once, with the number of trials. */
function uncheckedLines({ whole, trials }: ShownAudit): Printable[] {
  const all = trials.flatMap(({ audit }) =>
    audit.levels.flatMap(({ level, unchecked }) => unchecked.map((why) => ({ level, why }))),
  );
  const alike = Map.groupBy(all, ({ level, why }) => `${level}: ${why}`);
  return [
    ...whole.unchecked.map((why) => text`not checked: ${why}`),
    ...[...alike].map(([line, same]) => text`not checked: ${line} (${ours(plural(same.length, 'trial'))})`),
  ];
}

function nameOf({ caseId, variant, ordinal }: ListedTrial): Printable {
  return text`${caseId} · ${variant} #${ordinal}`;
}
