import { render } from 'preact';
import { App } from './app.tsx';
import { fileSource } from './data/file-source.ts';

const root = document.getElementById('app');
if (root) {
  if (location.hash === '') {
    const [batch] = await fileSource().batches();
    history.replaceState(null, '', `#/batch/${batch?.key}`);
  }
  render(<App source={fileSource()} />, root);
}
