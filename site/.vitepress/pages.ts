interface Page {
  text: string;
  link: string;
}

interface Group {
  text: string;
  items: [Page, ...Page[]];
}

/** The pages of the site in the order in which they are read. */
export const groups: Group[] = [
  {
    text: 'Start',
    items: [
      { text: 'What Offsite is', link: '/' },
      { text: 'The first ten minutes', link: '/start' },
      { text: 'Your first suite', link: '/first-suite' },
      { text: 'Glossary', link: '/glossary' },
    ],
  },
  {
    text: 'Guides',
    items: [
      { text: 'Suites', link: '/suites' },
      { text: 'Environments and images', link: '/environments' },
      { text: 'Validators and judges', link: '/validators' },
      { text: 'Tests and steps', link: '/tests' },
      { text: 'Benchmarks and tasks', link: '/tasks' },
      { text: 'Configuration', link: '/configuration' },
      { text: 'Models', link: '/models' },
      { text: 'Harnesses', link: '/runners' },
      { text: 'Looking at results', link: '/seeing' },
      { text: 'Comparing', link: '/comparing' },
      { text: 'Grading again', link: '/regrading' },
      { text: 'Evidence', link: '/evidence' },
      { text: 'Record and replay', link: '/replay' },
      { text: 'In CI', link: '/ci' },
      { text: 'From a program', link: '/library' },
      { text: 'The daemon', link: '/daemon' },
      { text: 'The fleet', link: '/fleet' },
      { text: 'The embedded service', link: '/service' },
      { text: 'Engines', link: '/engines' },
      { text: 'Remote and several engines', link: '/remote-engines' },
    ],
  },
  {
    text: 'Reference',
    items: [
      { text: 'Commands', link: '/reference/commands' },
      { text: 'suite.yaml', link: '/reference/suite' },
      { text: 'offsite.yaml', link: '/reference/offsite' },
      { text: 'Scripted models', link: '/reference/script' },
      { text: 'Exit codes', link: '/reference/exit-codes' },
      { text: 'Metrics', link: '/reference/metrics' },
      { text: 'Results', link: '/reference/results' },
      { text: 'Comparisons', link: '/reference/comparison' },
      { text: 'Environments', link: '/reference/environments' },
      { text: 'Grading', link: '/reference/grading' },
      { text: 'Whose fault it is', link: '/reference/blame' },
      { text: 'Task formats', link: '/reference/task-formats' },
      { text: 'Harnesses', link: '/reference/harnesses' },
      { text: 'Model configurations', link: '/reference/model-configurations' },
      { text: 'Model traffic', link: '/reference/model-traffic' },
      { text: 'Model servers', link: '/reference/model-servers' },
      { text: 'Replay', link: '/reference/replay' },
      { text: 'Service', link: '/reference/service' },
      { text: 'Fleet', link: '/reference/fleet' },
      { text: 'Engines as tested', link: '/reference/engine-results' },
      { text: 'Promises', link: '/reference/promises' },
      { text: 'Bounds', link: '/reference/bounds' },
    ],
  },
  {
    text: 'How it works',
    items: [
      { text: 'Architecture', link: '/architecture' },
      { text: 'Security', link: '/security' },
      { text: 'Threat model', link: '/threat-model' },
      { text: 'Hostile agents', link: '/hostile' },
      { text: 'Any agent with any model', link: '/translation' },
    ],
  },
];
