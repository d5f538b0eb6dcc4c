// What the pages can do beyond being read: charts, flame graphs, zoom, copying, news in brief, and following what goes on.
import { fillBriefs } from "./brief.js";
import { drawCharts } from "./charts.js";
import { offerCursor } from "./cursor.js";
import { drawFlames } from "./flames.js";
import { follow } from "./follow.js";
import { offerSharing } from "./sharing.js";
import { offerZoom } from "./waterfall.js";

function dress(root) {
  drawCharts(root);
  drawFlames(root);
  offerCursor(root);
  offerZoom(root);
  // What has to be scrolled sideways is reached by keys, too.
  for (const one of root.querySelectorAll(".scroll")) {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
  }
}

// The libraries are deferred classic scripts, which have run when a module does.
dress(document);
offerSharing(document);
follow(dress);
fillBriefs(document);
