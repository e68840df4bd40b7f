import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { EnvironmentStep } from '../../../record/environment.ts';
import type { TrialRecord } from '../../../record/trial-record.ts';
import type { TrialPage } from '../../model/shapes.ts';
import { BlobText, LongText } from '../parts/blob-text.tsx';
import { line } from '../parts/foreign.ts';
import { duration, plural, when } from '../parts/quantities.ts';
import { setQuery } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
import { Artifacts } from './artifacts.tsx';
import { Attempts } from './attempts.tsx';
import { Changes } from './changes.tsx';
import { Checks } from './checks.tsx';
import { Gradings } from './gradings.tsx';
import { useLoadValue, useRecord } from './record-context.ts';
import { Task } from './task.tsx';
import { Timeline } from './timeline.tsx';

interface Tab {
  name: string;
  title: string;
  count?: number | undefined;
  content: () => ComponentChildren;
}

/** The parts of a trial's page. */
export function TrialTabs({ page, query }: { page: TrialPage; query: URLSearchParams }) {
  const { record } = useRecord();
  const tabs = tabsOf(page, record, query);
  const chosen = tabs.find(({ name }) => name === query.get('tab')) ?? tabs[0];
  const list = useRef<HTMLDivElement>(null);
  // On a narrow screen the tabs scroll.
  useEffect(() => {
    list.current
      ?.querySelector(`#tab-${chosen?.name}`)
      ?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [chosen?.name]);
  const choose = (tab: Tab | undefined, focus = false) => {
    if (!tab) return;
    setQuery({ tab: tab.name === tabs[0]?.name ? undefined : tab.name });
    if (focus) list.current?.querySelector<HTMLElement>(`#tab-${tab.name}`)?.focus();
  };
  const move = (by: number) => {
    const index = (chosen ? tabs.indexOf(chosen) : 0) + by;
    choose(tabs[(index + tabs.length) % tabs.length], true);
  };
  useShortcuts([
    { keys: ['h', 'ArrowLeft'], does: 'Previous part of the trial', run: () => move(-1) },
    { keys: ['l', 'ArrowRight'], does: 'Next part of the trial', run: () => move(1) },
  ]);
  return (
    <>
      <div class="tabs" role="tablist" aria-label="Parts of the trial" ref={list}>
        {tabs.map((tab) => (
          <button
            key={tab.name}
            id={`tab-${tab.name}`}
            type="button"
            role="tab"
            aria-selected={tab === chosen}
            aria-controls="tab-content"
            tabIndex={tab === chosen ? 0 : -1}
            onClick={() => choose(tab)}
          >
            {tab.title}
            {tab.count !== undefined && <span class="count">{tab.count}</span>}
          </button>
        ))}
      </div>
      <div
        class={`tab-content ${chosen?.name}`}
        id="tab-content"
        role="tabpanel"
        aria-labelledby={`tab-${chosen?.name}`}
      >
        {chosen?.content()}
      </div>
    </>
  );
}

function tabsOf(page: TrialPage, record: TrialRecord, query: URLSearchParams): Tab[] {
  const { verifySteps = [], validations = [], judgments = [], artifacts, environment, changes } = record;
  const checks = verifySteps.length + validations.length + judgments.length;
  return [
    { name: 'timeline', title: 'Timeline', content: () => <Timeline query={query} /> },
    {
      name: 'changes',
      title: 'Changes',
      count: changes?.length ?? record.filesChangedCount ?? record.filesChanged?.length,
      content: () => <Changes />,
    },
    { name: 'checks', title: 'Checks', count: checks, content: () => <Checks /> },
    { name: 'task', title: 'Task', content: () => <Task /> },
    { name: 'artifacts', title: 'Artifacts', count: artifacts?.length ?? 0, content: () => <Artifacts /> },
    { name: 'environment', title: 'Environment', count: environment?.length, content: () => <Environment /> },
    {
      name: 'attempts',
      title: 'Attempts',
      count: page.attempts.length,
      content: () => <Attempts page={page} />,
    },
    ...(page.gradings.length > 0 ? [gradingsTab(page)] : []),
    { name: 'raw', title: 'Raw', content: () => <Raw /> },
  ];
}

function gradingsTab(page: TrialPage): Tab {
  const { length: count } = page.gradings;
  return { name: 'gradings', title: 'Graded again', count, content: () => <Gradings page={page} /> };
}

/** Install and prepare, with what they printed. */
function Environment() {
  const { record } = useRecord();
  const { environment = [] } = record;
  if (environment.length === 0) return <p class="notice">Nothing was installed or prepared.</p>;
  return (
    <div class="scroll-pane">
      {environment.map((step, index) => (
        <Step key={index} step={step} />
      ))}
    </div>
  );
}

function Step({
  step: { phase, description, startedAt, durationMs, exitCode, log },
}: {
  step: EnvironmentStep;
}) {
  const failed = exitCode !== undefined && exitCode !== 0;
  const [isOpen, setOpen] = useState(failed);
  const facts = [
    ...(exitCode === undefined ? [] : [`exit ${exitCode}`]),
    ...(durationMs === undefined ? [] : [duration(durationMs)]),
    ...(startedAt === undefined ? [] : [when(startedAt)]),
  ];
  return (
    <details class="check" open={failed} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class={`tag ${failed ? 'failed' : ''}`}>{phase}</span>{' '}
        <span class="name">{line(description)}</span> <span class="dim">{facts.join(' · ')}</span>
      </summary>
      {log === undefined ? (
        <p class="dim">It printed nothing, or another Offsite process ran it.</p>
      ) : (
        isOpen && <BlobText label="Output" sha256={log} />
      )}
    </details>
  );
}

/** The record as JSON, part by part. */
function Raw() {
  const { record, cuts } = useRecord();
  const load = useLoadValue();
  const [failure, setFailure] = useState<string>();
  const cutCount = Object.keys(cuts).length;
  const save = async () => {
    const url = URL.createObjectURL(new Blob([await load('')], { type: 'application/octet-stream' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = 'record.json';
    link.click();
    // The browser reads it after the click.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  return (
    <div class="scroll-pane">
      <p>
        <button type="button" onClick={() => void save().catch((error: Error) => setFailure(error.message))}>
          Save the whole record
        </button>{' '}
        {cutCount > 0 && <span class="dim">{plural(cutCount, 'long text')} shortened below.</span>} {failure}
      </p>
      {Object.entries(record).map(([name, value]) => (
        <Part key={name} name={name} value={value} />
      ))}
    </div>
  );
}

function Part({ name, value }: { name: string; value: unknown }) {
  const [isOpen, setOpen] = useState(false);
  const isShort = typeof value !== 'object' || value === null;
  if (isShort)
    return (
      <p class="member">
        <code>{name}</code> {line(JSON.stringify(value))}
      </p>
    );
  return (
    <details class="file" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code>{name}</code>{' '}
        <span class="dim">{Array.isArray(value) ? plural(value.length, 'entry', 'entries') : ''}</span>
      </summary>
      {isOpen && <Json value={value} name={name} />}
    </details>
  );
}

function Json({ value, name }: { value: unknown; name: string }) {
  const text = useMemo(() => JSON.stringify(value, null, 2), [value]);
  return <LongText text={text} label={name} />;
}
