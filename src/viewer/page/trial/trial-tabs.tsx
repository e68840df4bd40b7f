import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import type { TrialRecord } from '../../../record/trial-record.ts';
import type { TrialPage } from '../../model/shapes.ts';
import { setQuery } from '../router.ts';
import { useShortcuts } from '../shortcuts.ts';
import { Artifacts } from './artifacts.tsx';
import { Attempts } from './attempts.tsx';
import { Changes } from './changes.tsx';
import { Checks } from './checks.tsx';
import { Environment } from './environment.tsx';
import { Gradings } from './gradings.tsx';
import { Raw } from './raw.tsx';
import { useRecord } from './record-context.ts';
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
