import { render } from 'preact';
import { App, NoAccess } from './app.tsx';
import { httpSource, takeToken } from './data/http-source.ts';

const root = document.getElementById('app');
if (root) {
  const token = takeToken();
  render(token === undefined ? <NoAccess /> : <App source={httpSource(token)} />, root);
}
